// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl::task_filter_test {
namespace {

using testing::HasSubstr;

Task softmax_task() {
  Task task;
  task.id = "graphs/7/000001";
  task.name = "layer_norm_softmax";
  task.level = 2;
  task.difficulty = 2;
  task.source =
      "import torch\nM = 6\nN = 10\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        self.norm = nn.LayerNorm(N)\n    def forward(self, x):\n        return torch.softmax(self.norm(x), "
      "dim=-1)\n"
      "def get_inputs():\n    return [torch.randn(M, 2 * (N + 1), dtype=torch.float16), torch.randint(0, 3, (M,))]\n"
      "def get_init_inputs():\n    return []\n";
  return task;
}

bool passes(const std::string& where) {
  Task task = softmax_task();
  return parse_task_filter(where)(task, facts_of(task));
}

std::string error(const std::string& where) {
  try {
    parse_task_filter(where);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "no error";
}

TEST(TaskFacts, ReadFromTheSource) {
  TaskFacts facts = facts_of(softmax_task());
  EXPECT_EQ(facts.elements, 6 * 22 + 6);
  EXPECT_EQ(facts.dtypes, std::set<std::string>{"float16"});
  EXPECT_TRUE(facts.operators.count("softmax") && facts.operators.count("layernorm"));
  EXPECT_EQ(whole_value("2 * (N + 1) // 3", {{"N", 10}}), 7);
  EXPECT_EQ(whole_value("N / 2", {{"N", 10}}), std::nullopt);
  EXPECT_EQ(whole_value("1 // 0", {}), std::nullopt);
  EXPECT_EQ(whole_value("99999999999 * 99999999999", {}), std::nullopt);
}

TEST(TaskFilter, Comparisons) {
  EXPECT_TRUE(passes(""));
  EXPECT_TRUE(passes("level=2 and op=softmax"));
  EXPECT_TRUE(passes("op=layer_norm") && passes("op=LayerNorm") && passes("op!=relu"));
  EXPECT_FALSE(passes("op=relu"));
  EXPECT_TRUE(passes("elements>=138") && passes("elements<1e6") && !passes("elements > 138"));
  EXPECT_TRUE(passes("name~softmax") && passes("id='graphs/7/000001'") && passes("solution=no"));
  EXPECT_TRUE(passes("dtype=float16") && !passes("dtype=float32"));
}

TEST(TaskFilter, AndBindsTighterThanOr) {
  EXPECT_TRUE(passes("level=2 or level=1 and op=relu"));
  EXPECT_FALSE(passes("(level=2 or level=1) and op=relu"));
  EXPECT_TRUE(passes("not op=relu and not (level=1 or difficulty>2)"));
}

TEST(TaskFilter, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(error("levl=2"), HasSubstr("did you mean 'level'?"));
  EXPECT_THAT(error("level=two"), testing::AllOf(HasSubstr("is no number"), HasSubstr("character 7")));
  EXPECT_THAT(error("level"), HasSubstr("not complete"));
  EXPECT_THAT(error("(level=2"), HasSubstr("not closed"));
  EXPECT_THAT(error("level=2 level=1"), HasSubstr("left over"));
  EXPECT_THAT(error("op<softmax"), HasSubstr("cannot be compared"));
  EXPECT_THAT(error("name>3"), HasSubstr("is a text"));
  EXPECT_THAT(error("name='x"), HasSubstr("quote"));
  EXPECT_THAT(error("solution=maybe"), HasSubstr("yes nor no"));
  EXPECT_THAT(error(std::string(500, '(')), HasSubstr("deeply"));
}

}  // namespace
}  // namespace tritonrl::task_filter_test
