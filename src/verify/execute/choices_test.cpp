// SPDX-License-Identifier: Apache-2.0
// Choices: which configurations of an autotuner are run, and what they are called.
#include "verify/execute/choices.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace tritonrl::choices_test {
namespace {

TraceChoice choice(int64_t block, int64_t warps) {
  TraceChoice out;
  out.grid = {1, 1, 1};
  out.num_warps = warps;
  out.num_stages = 3;
  out.args = {{"x_ptr", tensor_arg(0)}, {"BLOCK", int_arg(block)}};
  return out;
}

TraceStep tuned(std::vector<TraceChoice> choices) {
  TraceStep step;
  step.is_launch = true;
  step.kernel = 0;
  step.choices = std::move(choices);
  return step;
}

TraceFile one_kernel() {
  TraceFile file;
  file.kernels.emplace_back();
  file.kernels[0].name = "swish";
  return file;
}

std::vector<std::string> names(const std::vector<ChoiceRun>& runs, bool asked = true) {
  std::vector<std::string> out;
  for (const ChoiceRun& run : runs) {
    if (run.asked == asked) out.push_back(run.name);
  }
  return out;
}

TEST(Choices, OneRunForEachThatIsUnlikeTheOthers) {
  CaseTrace trace;
  trace.tape = {tuned({choice(64, 4), choice(128, 4), choice(64, 8), choice(128, 8), choice(256, 4)})};
  using List = std::vector<std::string>;
  EXPECT_EQ(names(choice_runs(one_kernel(), trace, false)), (List{"swish: BLOCK = 128", "swish: BLOCK = 256"}));
  EXPECT_EQ(
      names(choice_runs(one_kernel(), trace, true)),
      (List{"swish: BLOCK = 128", "swish: num_warps = 8", "swish: BLOCK = 128, num_warps = 8", "swish: BLOCK = 256"}));
  trace.tape = {tuned({choice(64, 4)})};
  EXPECT_TRUE(choice_runs(one_kernel(), trace, true).empty());
}

TEST(Choices, SeveralLaunchesAreTriedSideBySide) {
  CaseTrace trace;
  trace.tape = {tuned({choice(64, 4), choice(128, 4), choice(256, 4)}), tuned({choice(8, 4)}),
                tuned({choice(64, 4), choice(32, 4)})};
  auto runs = choice_runs(one_kernel(), trace, false);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].choices, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(runs[0].name, "swish: BLOCK = 128; swish: BLOCK = 32");
  EXPECT_EQ(runs[1].choices, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(runs[1].name, "swish: BLOCK = 256");
  EXPECT_EQ(runs[0].growth, 1);
  trace.tape[0].choices[2].grid = {4, 2, 1};
  EXPECT_EQ(choice_runs(one_kernel(), trace, false)[1].growth, 4.5) << "9 programs in the place of 2";
}

TEST(Choices, BeyondTheLimitTheyAreOnlyNamed) {
  std::vector<TraceChoice> many;
  for (int64_t block = 1; block <= 12; ++block) many.push_back(choice(block, 4));
  CaseTrace trace;
  trace.tape = {tuned(many)};
  auto runs = choice_runs(one_kernel(), trace, false);
  EXPECT_EQ(names(runs).size(), kMostChoiceRuns);
  EXPECT_EQ(names(runs, false),
            (std::vector<std::string>{"swish: BLOCK = 10", "swish: BLOCK = 11", "swish: BLOCK = 12"}));
}

}  // namespace
}  // namespace tritonrl::choices_test
