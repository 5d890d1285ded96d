// SPDX-License-Identifier: Apache-2.0
// Solutions for recorded modules, through the real fork servers and the interpreter.
#include "verify/solve/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/synth/graph_synth.h"
#include "verify/solve/recorded_graph.h"
#include "verify/trace/trace_graph.h"

namespace tritonrl::solver_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Solver : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      VerifyConfig config;
      config.memory_mb = 1024;
      config.gpus = 0;
      verifier_ = Verifier::open(config).release();
    } catch (const Error& error) {
      FAIL() << error.what();
    }
  }
  static void TearDownTestSuite() {
    delete verifier_;
    verifier_ = nullptr;
  }

  // A module: members of __init__, lines of forward(), the inputs.
  static Task module(const std::string& init, const std::string& arguments, const std::string& body,
                     const std::string& inputs) {
    Task task;
    task.id = "own";
    task.source = cat("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nB = 6\nC = 8\nH = 9\n",
                      "W = 10\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n");
    for (const std::string& line : split(init, '\n')) task.source += "        " + line + "\n";
    task.source += cat("\n    def forward(self, ", arguments, "):\n");
    for (const std::string& line : split(body, '\n')) task.source += "        " + line + "\n";
    task.source += cat("\ndef get_inputs():\n    return [", inputs, "]\n\ndef get_init_inputs():\n    return []\n");
    task.tiny = {{"B", 2}, {"H", 7}, {"W", 11}};
    return task;
  }

  static std::vector<Verdict> verify(std::vector<Task>& tasks) {
    std::vector<const Task*> asked;
    for (const Task& task : tasks) asked.push_back(&task);
    return verifier_->verify_solutions(asked);
  }

  static Verifier* verifier_;
};
Verifier* Solver::verifier_ = nullptr;

TEST_F(Solver, SolvesItsOwnStreamAgain) {
  graphs::SynthConfig config;
  config.seed = 23;
  config.dtypes = {"float32", "float16"};
  config.only_covered = true;
  std::vector<Task> tasks = graphs::GraphStream(config).next(60);
  std::vector<Proposal> proposals(tasks.size());
  parallel_for(tasks.size(), verifier_->workers(),
               [&](size_t i) { proposals[i] = propose_solution(*verifier_, tasks[i]); });
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(proposals[i].kind, "") << tasks[i].id << " " << tasks[i].name << ": " << proposals[i].problem;
    EXPECT_NE(proposals[i].solution, tasks[i].solution);
    tasks[i].solution = proposals[i].solution;
  }
  std::erase_if(tasks, [](const Task& task) { return task.solution.empty(); });
  std::vector<Verdict> verdicts = verify(tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_TRUE(verdicts[i].correct()) << tasks[i].name << ": " << verdicts[i].reason() << "\n" << tasks[i].solution;
  }
}

TEST_F(Solver, SolvesModulesOfOtherHands) {
  struct Case {
    std::string init, arguments, body, inputs;
  };
  const std::string image = "torch.randn(B, C, H, W)", rows = "torch.randn(B, H, C)";
  std::vector<Case> cases = {
      // A block with a shortcut, in-place activations and a head.
      {"self.conv1 = nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False)\nself.bn1 = nn.BatchNorm2d(12)\n"
       "self.conv2 = nn.Conv2d(12, 12, 3, padding=1, groups=3)\nself.short = nn.Conv2d(8, 12, 1, stride=2)\n"
       "self.layers = nn.ModuleList([nn.Linear(12, 5)])",
       "x",
       "y = F.relu(self.bn1(self.conv1(x)), inplace=True)\ny = self.conv2(y)\ny += self.short(x)\n"
       "y = torch.flatten(F.adaptive_avg_pool2d(y, 1), 1)\nreturn self.layers[0](y)",
       image},
      // Attention by hand, with a buffer for its mask.
      {"self.qkv = nn.Linear(8, 24)\nself.register_buffer('mask', torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))",
       "x",
       "n, t, c = x.shape\nq, k, v = self.qkv(x).split(c, dim=2)\nq, k, v = (z.view(n, t, 2, c // 2).transpose(1, 2) "
       "for z in (q, k, v))\natt = (q @ k.transpose(-2, -1)) * (c // 2) ** -0.5\n"
       "att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float('-inf'))\n"
       "return (F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(n, t, c)",
       rows},
      {"", "x", "return F.scaled_dot_product_attention(x, x, x, is_causal=True)", "torch.randn(B, 2, H, C)"},
      // Sizes, reductions over dimensions that are no neighbours, a number among the arguments.
      {"", "x, s", "return (x * s).mean(dim=(0, 2)) + x.var(dim=(0, 2), unbiased=True)", rows + ", 2.5"},
      {"", "x", "return torch.cat([x[:, 1:-1], x.flip(1), torch.zeros_like(x[:, :2])], dim=1).cumsum(1)", rows},
      {"", "x", "return x.view(B, -1).norm(dim=1, keepdim=True) / x.norm()", rows},
      {"self.w = nn.Parameter(torch.randn(8))", "x", "return torch.matmul(x, self.w), x.max(dim=1)[0]", rows},
      {"self.pool = nn.MaxPool2d(2)\nself.gn = nn.GroupNorm(2, 8)", "x",
       "return torch.sigmoid(self.gn(self.pool(x))).amax(dim=(1, 3))", image},
      {"self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)\n"
       "self.norm = nn.InstanceNorm2d(6)",
       "x", "return F.gelu(self.norm(self.up(x)))", image},
      {"self.emb = nn.Embedding(17, 8)", "i", "return self.emb(i).sum(dim=1) ** 4", "torch.randint(0, 17, (B, H))"},
      {"", "x, m", "return torch.cumsum(x * m, dim=1)", rows + ", torch.randint(0, 2, (B, H, C)).bool()"},
      {"", "a, b", "return torch.einsum('bhc,cn->bhn', a, b).unfold(1, 1, 1).squeeze(-1)",
       rows + ", torch.randn(C, W)"},
      // Rows that are read in blocks.
      {"self.ln = nn.LayerNorm([8, 40, 40])", "x", "return self.ln(x)", "torch.randn(B, C, 40, 40)"},
      {"", "x", "return F.softmax(x, dim=1), torch.logsumexp(x, 1), x.argmax(dim=1), x.std(dim=1)",
       "torch.randn(B, 9001)"},
      {"self.gn = nn.GroupNorm(2, 4)", "x", "return self.gn(x)", "torch.randn(B, 4, 70, 70)"},
      {"", "x", "return torch.cumsum(x, dim=1), F.log_softmax(x, dim=1)", "torch.randn(B, 9001)"},
  };
  std::vector<Task> tasks;
  for (const Case& one : cases) tasks.push_back(module(one.init, one.arguments, one.body, one.inputs));
  parallel_for(tasks.size(), verifier_->workers(), [&](size_t i) {
    Proposal proposal = propose_solution(*verifier_, tasks[i]);
    EXPECT_EQ(proposal.kind, "") << proposal.problem << "\n" << tasks[i].source;
    tasks[i].solution = proposal.solution;
  });
  std::erase_if(tasks, [](const Task& task) { return task.solution.empty(); });
  std::vector<Verdict> verdicts = verify(tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_TRUE(verdicts[i].correct()) << verdicts[i].reason() << "\n" << tasks[i].source << tasks[i].solution;
  }
}

TEST_F(Solver, SaysWhyThereIsNoSolution) {
  struct Case {
    std::string init, body, kind;
  };
  for (const Case& one :
       std::vector<Case>{{"self.rnn = nn.GRU(8, 8, batch_first=True)", "return self.rnn(x)[0]", "operator"},
                         {"", "return F.max_pool1d(x, 2, ceil_mode=True, stride=3)", "form"},
                         {"", "return x.double() * 2", "form"},
                         {"", "return [x * 2]", "outputs"},
                         {"", "x.mul_(2)\nreturn x + 1", "in_place"},
                         {"", "y = x + 1\nz = y[0]\ny.mul_(2)\nreturn z + y", "in_place"},
                         {"self.t = [torch.randn(8)]", "return x + self.t[0]", "inputs"},
                         {"", "return x * x.sum().item()", "unrecordable"}}) {
    Proposal proposal = propose_solution(*verifier_, module(one.init, "x", one.body, "torch.randn(B, H, C)"));
    EXPECT_EQ(proposal.kind, one.kind) << one.body << ": " << proposal.problem;
    EXPECT_NE(proposal.problem, "") << one.body;
    EXPECT_EQ(proposal.solution, "") << one.body;
  }
}

// Of the tasks of a stream, as recorded.
std::map<std::string, std::string> recorded_outlines(Verifier& verifier, std::vector<Task>& tasks) {
  std::vector<std::string> outlines(tasks.size());
  parallel_for(tasks.size(), verifier.workers(), [&](size_t i) {
    auto reference = verifier.record(tasks[i]);
    if (!reference->failure.empty()) return;
    tasks[i].recorded = describe(*reference->file.find("full"));
    Computed computed = computed_by(reference->file);
    outlines[i] = tasks[i].recorded.outline = computed.outline;
    tasks[i].recorded.operators = computed.operators;
  });
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].level >= 2) out[outlines[i]] = tasks[i].source;
  }
  out.erase("");
  return out;
}

TEST_F(Solver, WhatIsRecordedIsKeptOutOfTheStream) {
  graphs::SynthConfig config;
  config.seed = 5;
  config.max_nodes = 2;
  config.level1_share = 0;
  config.fusion_share = 0;
  config.operators = {"core", "softmax", "linear", "conv2d", "max_pool2d", "layer_norm", "sum", "mean"};
  config.dtypes = {"float32"};
  std::vector<Task> before = graphs::GraphStream(config).next(250);
  auto excluded = recorded_outlines(*verifier_, before);
  ASSERT_GT(excluded.size(), 100u);
  std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "excluded.jsonl";
  save_tasks(file, before);
  config.seed = 6;
  std::vector<Task> after = graphs::GraphStream(config, load_exclusion(file)).next(120);
  int64_t shared = 0;
  for (const auto& [outline, source] : recorded_outlines(*verifier_, after)) {
    if (!excluded.count(outline)) continue;
    ++shared;
    ADD_FAILURE() << "drawn although excluded:\n" << source << "\n" << excluded[outline];
  }
  EXPECT_EQ(shared, 0);
  std::vector<Task> open = graphs::GraphStream(config).next(120);  // Without it many come again.
  for (const auto& [outline, source] : recorded_outlines(*verifier_, open)) shared += excluded.count(outline) > 0;
  EXPECT_GT(shared, 10);
  for (Task& task : before) task.recorded = {};
  save_tasks(file, before);
  EXPECT_THROW(load_exclusion(file), Error);
}

TEST_F(Solver, RecordedTasksHaveTheOperatorsThatCouldBeDrawnAndNoneLeftOut) {
  graphs::SynthConfig config;
  config.seed = 9;
  config.max_nodes = 4;
  config.layer_share = 0.3;
  config.dtypes = {"float32"};
  config.leave_out = {"softmax", "sigmoid", "mish", "cumsum", "exclusive_cumsum", "reverse_cumsum", "max_pool2d"};
  std::vector<Task> tasks = graphs::GraphStream(config).next(150);
  recorded_outlines(*verifier_, tasks);
  auto drawable = graphs::drawable_operators(config);
  int64_t known = 0;
  for (const Task& task : tasks) {
    if (task.recorded.outline.rfind("outline:", 0) != 0) continue;
    known += !task.recorded.operators.empty();
    for (const std::string& name : task.recorded.operators) {
      EXPECT_TRUE(drawable.contains(name)) << name << " in\n" << task.source;
    }
  }
  EXPECT_GT(known, 100);
  for (const std::string& name : config.leave_out) EXPECT_FALSE(drawable.contains(name));
}

// What the stream takes for an operator, a recorder takes for the same: else neither exclusion nor leave_out would
// hold.
TEST_F(Solver, SingleOperatorsAreRecordedUnderTheNamesOfTheirOutlines) {
  graphs::SynthConfig config;
  config.seed = 3;
  config.dtypes = {"float32"};
  config.writing = graphs::WritingStyle::kBare;
  std::vector<Task> tasks = graphs::GraphStream(config).next_of_level(1, 400);
  recorded_outlines(*verifier_, tasks);
  std::set<std::string> compared;
  for (const Task& task : tasks) {
    const graphs::Operator* op = graphs::find_operator(task.name);
    if (op == nullptr || task.recorded.outline.rfind("outline:", 0) != 0) continue;
    if (task.name == "hinge_loss") continue;  // By mean or by sum.
    auto expected = graphs::outline_operators(*op);
    compared.insert(task.name);
    EXPECT_EQ(task.recorded.operators, std::vector<std::string>(expected.begin(), expected.end())) << task.source;
  }
  EXPECT_GT(compared.size(), 100u);
}

TEST_F(Solver, TellsSizesApartThatAreAlikeByChance) {
  // Channels out and the height are both 9.
  Task task =
      module("self.conv = nn.Conv2d(8, H, 3, padding=1)", "x", "return self.conv(x)", "torch.randn(B, C, H, W)");
  task.source = replace_all(task.source, "nn.Conv2d(8, H, 3", "nn.Conv2d(8, OUT, 3");
  task.source = replace_all(task.source, "W = 10\n", "W = 10\nOUT = 9\n");
  Proposal proposal = propose_solution(*verifier_, task);
  EXPECT_THAT(proposal.solution, HasSubstr("self.conv.weight.shape[0]"));
  EXPECT_THAT(proposal.solution, HasSubstr("B, C, H, W = x.shape"));
}

}  // namespace
}  // namespace tritonrl::solver_test
