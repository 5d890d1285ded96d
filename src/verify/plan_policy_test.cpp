// SPDX-License-Identifier: Apache-2.0
// The policy: what a plan's data flow says about who did the work.
#include <gtest/gtest.h>

#include "verify/plan_writer.h"

namespace tritonrl::plan_policy_test {
namespace {

PolicyFinding finding(const Plan& plan, CallPolicy policy = CallPolicy::kStrict) {
  auto parsed = parse_written(file_of({plan}));
  EXPECT_TRUE(parsed) << parsed.why;
  return parsed ? check_policy(parsed.value->cases[0], policy) : PolicyFinding{};
}
std::string message(const Plan& plan, CallPolicy policy = CallPolicy::kStrict) {
  return human_text(finding(plan, policy).finding);
}

// small_plan() with room for two more tensors.
Plan roomy() {
  Plan plan = small_plan();
  plan.values.push_back(plan_value(2));
  plan.values.push_back(plan_value(3));
  return plan;
}
PlanStep empty_y() { return call_step("aten.empty_like.default", {0}, 1); }

TEST(Policy, HonestPlansPass) {
  EXPECT_TRUE(finding(small_plan()).finding.passed());
  Plan views = roomy();  // The output is a view of a copy of what the launch wrote.
  views.values[3] = plan_value(2, {32});
  views.tape.push_back(call_step("aten.clone.default", {1}, 2));
  views.tape.push_back(call_step("aten.view.default", {2}, 3));
  views.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(3)});
  EXPECT_TRUE(finding(views).finding.passed());
}

TEST(Policy, NoLaunch) {
  Plan plan = small_plan();
  plan.tape = {empty_y()};
  EXPECT_EQ(message(plan), "no Triton kernel is launched");
}

TEST(Policy, EmptyGrid) {
  Plan plan = small_plan();
  plan.tape[1] = launch_step({0, 1}, {0, 1, 1});
  EXPECT_EQ(message(plan), "every Triton launch has an empty grid");
  plan = small_plan();  // One configuration of an autotuner does nothing: the tuner would find it fast.
  plan.tape[1].choices.push_back(plan.tape[1].choices[0]);
  EXPECT_TRUE(finding(plan).finding.passed());
  plan.tape[1].choices[1].grid = {4, 0, 1};
  EXPECT_EQ(message(plan), "every Triton launch has an empty grid");
}

TEST(Policy, TensorsOfEveryChoiceAndOfDescriptorsAreReached) {
  Plan plan = roomy();
  plan.tape = {empty_y(), call_step("aten.empty_like.default", {0}, 2), launch_step({0, 1})};
  plan.outputs = leaf(2);
  EXPECT_EQ(message(plan), "no Triton launch reaches an output");
  plan.tape[2].choices.push_back(plan.tape[2].choices[0]);
  plan.tape[2].choices[1].args[1].second = tensor_arg(2);
  EXPECT_EQ(message(plan), "");
  plan.tape[2] = launch_step({0, 2});
  PlanArg sizes = plan_arg(PlanArg::Kind::kList, 0, "", {int_arg(4), int_arg(8)});
  plan.tape[2].choices[0].args[1].second =
      plan_arg(PlanArg::Kind::kDescriptor, 2, "", {sizes, sizes, sizes, int_arg(0)});
  EXPECT_EQ(message(plan), "");
}

TEST(Policy, Delegation) {
  Plan plan = roomy();
  plan.tape.push_back(call_step("aten.relu.default", {1}, 2));
  plan.outputs = leaf(2);
  PolicyFinding strict = finding(plan), mixed = finding(plan, CallPolicy::kMixed);
  EXPECT_EQ(strict.finding.rule(), Rule::kLibraryCalls);
  EXPECT_EQ(strict.finding.told.operations.at(0).str(), "aten.relu.default");
  EXPECT_TRUE(mixed.finding.passed());
  EXPECT_EQ(mixed.delegated_ops, std::vector<std::string>{"aten.relu.default"});
}

TEST(Policy, DecoyWhoseResultIsThrownAway) {
  Plan plan = roomy();  // The launch writes y, the output is computed from x alone.
  plan.tape = {empty_y(), launch_step({1}), call_step("aten.relu.default", {0}, 2)};
  plan.outputs = leaf(2);
  EXPECT_EQ(message(plan, CallPolicy::kMixed), "no Triton launch reaches an output");
}

TEST(Policy, AllocationTakesShapesOnly) {
  Plan plan = roomy();
  plan.tape.push_back(call_step("aten.ones_like.default", {1}, 2));
  plan.outputs = leaf(2);
  EXPECT_EQ(message(plan), "no Triton launch reaches an output");
}

TEST(Policy, OverwritingWhatTheLaunchWroteUndoesIt) {
  Plan plan = roomy();
  plan.tape = {empty_y(), launch_step({1}), call_step("aten.relu.default", {0}, 2),
               call_step("aten.copy_.default", {1, 2}, 1)};
  EXPECT_EQ(message(plan, CallPolicy::kMixed), "no Triton launch reaches an output");
  // Overwriting half of it does not.
  plan.values[3] = plan_value(1, {2, 8});
  plan.values.push_back(plan_value(2, {2, 8}));
  plan.tape[3] = call_step("aten.slice.Tensor", {1}, 3);
  plan.tape.push_back(call_step("aten.slice.Tensor", {2}, 4));
  plan.tape.push_back(call_step("aten.copy_.default", {3, 4}, 3));
  EXPECT_TRUE(finding(plan, CallPolicy::kMixed).finding.passed());
}

TEST(Policy, OutputThatIsAnInput) {
  Plan plan = small_plan();
  plan.tape[1] = launch_step({1});
  plan.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(1), leaf(0)});
  EXPECT_EQ(message(plan), "an output is one of the inputs");
}

// What __init__ and get_inputs() do is theirs, and no work of forward().
TEST(Policy, StepsBeforeForward) {
  Plan plan = roomy();
  plan.parameters.resize(1);
  plan.parameters[0].name = "w";
  plan.parameters[0].value = 2;
  plan.tape = {call_step("aten.normal.default", {}, 2), call_step("aten.randn.default", {}, 0), empty_y(),
               launch_step({0, 2, 1})};
  plan.init_steps = plan.input_steps = 1;
  EXPECT_EQ(message(plan), "");
  EXPECT_TRUE(finding(plan).delegated_ops.empty());
  plan.tape[3] = launch_step({0, 1});
  plan.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(1), leaf(2)});
  EXPECT_EQ(message(plan), "an output is one of the inputs");
  plan.tape.insert(plan.tape.begin() + 1, launch_step({2}));
  plan.init_steps = 2;
  EXPECT_EQ(message(plan, CallPolicy::kMixed), "Triton kernels are launched in __init__");
}

TEST(Policy, Plumbing) {
  for (const char* name :
       {"aten.empty.memory_format", "aten._to_copy.default", "aten.t.default", "aten.zeros_like.default",
        "aten.copy_.default", "aten.constant_pad_nd.default", "aten.as_strided.default"}) {
    EXPECT_TRUE(is_plumbing(name)) << name;
  }
  for (const char* name : {"aten.mul.Tensor", "aten.mm.default", "aten.sum.dim_IntList", "aten.linear.default",
                           "prims.empty.default", "empty", "aten", ""}) {
    EXPECT_FALSE(is_plumbing(name)) << name;
  }
}

}  // namespace
}  // namespace tritonrl::plan_policy_test
