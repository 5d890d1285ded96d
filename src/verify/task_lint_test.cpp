// SPDX-License-Identifier: Apache-2.0
// Degenerate tasks are flagged, honest ones are not; traces of equal computations hash alike; variants are proven.
#include "verify/task_lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/trace/trace_graph.h"
#include "verify/variants.h"

namespace tritonrl::task_lint_test {
namespace {

using testing::Contains;
using testing::IsEmpty;

class TaskLint : public testing::Test {
 protected:
  static void SetUpTestSuite() { verifier_ = Verifier::open(VerifyConfig()).release(); }
  static void TearDownTestSuite() {
    delete verifier_;
    verifier_ = nullptr;
  }
  static Task task(const std::string& forward, const std::string& inputs = "[torch.randn(N, 33)]",
                   const std::string& init = "") {
    Task out;
    out.id = "t";
    out.source = cat(
        "import torch\nN = 48\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n",
        init, "    def forward(self, x):\n", forward, "def get_inputs():\n    return ", inputs,
        "\ndef get_init_inputs():\n    return []\n");
    return out;
  }
  static std::vector<std::string> flags(const Task& task) {
    std::vector<std::string> out;
    for (const LintFlag& flag : lint_task(*verifier_, task, {}).flags) out.push_back(flag.flag);
    return out;
  }
  static Recorded recorded(const std::string& forward) {
    auto reference = verifier_->record(task(forward));
    EXPECT_EQ(reference->failure, "");
    return describe(*reference->file.find("full"));
  }
  static Verifier* verifier_;
};
Verifier* TaskLint::verifier_ = nullptr;

TEST_F(TaskLint, AnHonestTaskHasNoFlags) {
  EXPECT_THAT(flags(task("        return torch.softmax(torch.relu(x) * 2 + x, dim=1)\n")), IsEmpty());
}

TEST_F(TaskLint, DegenerateTasksAreFlagged) {
  EXPECT_THAT(flags(task("        return x * 0\n")), Contains("zero"));
  EXPECT_THAT(flags(task("        return torch.ones_like(x) * 3 + 0 * x\n")), Contains("constant"));
  EXPECT_THAT(flags(task("        return torch.full_like(x, 2.0).cumsum(1)\n")), Contains("input_independent"));
  EXPECT_THAT(flags(task("        return x + 1\n", "[torch.arange(N * 33.0).view(N, 33)]")),
              Contains("seed_invariant"));
  EXPECT_THAT(flags(task("        return x.mean(0, keepdim=True).expand(N, 33) * 2\n")), Contains("uniform"));
  EXPECT_THAT(flags(task("        return torch.sigmoid(x) * 1e-3\n")), Contains("absolute"));
  EXPECT_THAT(flags(task("        return (x + 1e8) - 1e8\n")), Contains("noise_level"));
  EXPECT_THAT(flags(task("        raise ValueError('no')\n")), Contains("unrecordable"));
  EXPECT_THAT(flags(task("        return x + (1 if x.sum() > 0 else 2)\n")), Contains("unrecordable"));
}

TEST_F(TaskLint, AnOperationThatNobodyMissesIsNamed) {
  auto report = lint_task(*verifier_, task("        return torch.relu(x.abs() + 1) * 2\n"), {});
  bool named = false;
  for (const LintFlag& flag : report.flags) {
    named |= flag.flag == "drop" && flag.detail.find("aten.relu") != std::string::npos;
    EXPECT_EQ(flag.detail.find("aten.mul"), std::string::npos) << flag.detail;
  }
  EXPECT_TRUE(named);
  EXPECT_EQ(report.controls, 4);
}

TEST_F(TaskLint, TracesHashByWhatTheyCompute) {
  Recorded one = recorded("        a = torch.relu(x)\n        b = torch.tanh(x)\n        return a - b * 0.5\n");
  Recorded same = recorded(
      "        q = torch.tanh(x)\n        w = x.relu()\n        unused = x.exp()\n        return w - 0.5 * q\n");
  Recorded constant = recorded("        return torch.relu(x) - torch.tanh(x) * 0.25\n");
  Recorded swapped = recorded("        return torch.tanh(x) - torch.relu(x) * 0.5\n");
  EXPECT_EQ(one.graph, same.graph);
  EXPECT_NE(one.graph, constant.graph);
  EXPECT_EQ(one.loose_graph, constant.loose_graph);
  EXPECT_NE(one.loose_graph, swapped.loose_graph);
  EXPECT_EQ(one.compute_ops, 4);
  EXPECT_EQ(one.level, 2);
  EXPECT_EQ(recorded("        return torch.relu(x.view(-1).contiguous())\n").level, 1);
  EXPECT_EQ(recorded("        for i in range(11):\n            x = x.sin()\n        return x\n").level, 3);
}

TEST_F(TaskLint, VariantsAreProven) {
  Task norm =
      task("        return self.norm(x)\n", "[torch.randn(N, 40)]", "        self.norm = torch.nn.LayerNorm(40)\n");
  Variants found = find_variants(*verifier_, norm);
  EXPECT_EQ(found.failure, "");
  EXPECT_EQ(found.larger, (Sizes{{"N", 72}}));  // The width stands in the module, where nobody may touch it.
  EXPECT_LT(found.tiny.at("N"), 48);
  EXPECT_EQ(found.source, norm.source);
}

}  // namespace
}  // namespace tritonrl::task_lint_test
