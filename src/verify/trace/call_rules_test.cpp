// SPDX-License-Identifier: Apache-2.0
// Call rules: what a trace's data flow says about who did the work.
#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace tritonrl::call_rules_test {
namespace {

CallFinding finding(const CaseTrace& trace, CallRules rules = CallRules::kStrict) {
  auto parsed = parse_written(file_of({trace}));
  EXPECT_TRUE(parsed) << parsed.why;
  return parsed ? check_calls(parsed.value->cases[0], rules) : CallFinding{};
}
std::string message(const CaseTrace& trace, CallRules rules = CallRules::kStrict) {
  return human_text(finding(trace, rules).finding);
}

// small_trace() with room for two more tensors.
CaseTrace roomy() {
  CaseTrace trace = small_trace();
  trace.values.push_back(trace_value(2));
  trace.values.push_back(trace_value(3));
  return trace;
}
TraceStep empty_y() { return call_step("aten.empty_like.default", {0}, 1); }

TEST(CallRules, HonestTracesPass) {
  EXPECT_TRUE(finding(small_trace()).finding.passed());
  CaseTrace views = roomy();  // The output is a view of a copy of what the launch wrote.
  views.values[3] = trace_value(2, {32});
  views.tape.push_back(call_step("aten.clone.default", {1}, 2));
  views.tape.push_back(call_step("aten.view.default", {2}, 3));
  views.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(3)});
  EXPECT_TRUE(finding(views).finding.passed());
}

TEST(CallRules, NoLaunch) {
  CaseTrace trace = small_trace();
  trace.tape = {empty_y()};
  EXPECT_EQ(message(trace), "no Triton kernel is launched");
}

TEST(CallRules, EmptyGrid) {
  CaseTrace trace = small_trace();
  trace.tape[1] = launch_step({0, 1}, {0, 1, 1});
  EXPECT_EQ(message(trace), "every Triton launch has an empty grid");
  trace = small_trace();  // One configuration of an autotuner does nothing: the tuner would find it fast.
  trace.tape[1].choices.push_back(trace.tape[1].choices[0]);
  EXPECT_TRUE(finding(trace).finding.passed());
  trace.tape[1].choices[1].grid = {4, 0, 1};
  EXPECT_EQ(message(trace), "every Triton launch has an empty grid");
}

TEST(CallRules, TensorsOfEveryChoiceAndOfDescriptorsAreReached) {
  CaseTrace trace = roomy();
  trace.tape = {empty_y(), call_step("aten.empty_like.default", {0}, 2), launch_step({0, 1})};
  trace.outputs = leaf(2);
  EXPECT_EQ(message(trace), "no Triton launch reaches an output");
  trace.tape[2].choices.push_back(trace.tape[2].choices[0]);
  trace.tape[2].choices[1].args[1].second = tensor_arg(2);
  EXPECT_EQ(message(trace), "");
  trace.tape[2] = launch_step({0, 2});
  TraceArg sizes = trace_arg(TraceArg::Kind::kList, 0, "", {int_arg(4), int_arg(8)});
  trace.tape[2].choices[0].args[1].second =
      trace_arg(TraceArg::Kind::kDescriptor, 2, "", {sizes, sizes, sizes, int_arg(0)});
  EXPECT_EQ(message(trace), "");
}

// __init__ makes two weights (values 2 and 3), makes 4 of them with `op`, and forward's kernel reads that.
CaseTrace with_init(const std::string& op, const std::string& name = "folded",
                    const char* second = "aten.randn.default") {
  CaseTrace trace = small_trace();
  for (int64_t id = 2; id <= 4; ++id) trace.values.push_back(trace_value(id));
  trace.tape = {call_step("aten.randn.default", {}, 2), call_step(second, {}, 3), call_step(op, {2, 3}, 4), empty_y(),
                launch_step({0, 4, 1})};
  trace.init_steps = 3;
  TraceParameter parameter;
  parameter.name = name;
  parameter.value = 4;
  trace.parameters = {parameter};
  return trace;
}

// The rule that a candidate breaks beside its task.
Finding beside(const CaseTrace& own, CaseTrace task, CallRules rules = CallRules::kStrict) {
  task.name = "task";
  auto parsed = parse_written(file_of({own, task}));
  EXPECT_TRUE(parsed) << parsed.why;
  return parsed ? check_calls(parsed.value->cases[0], rules, &parsed.value->cases[1]).finding : Finding();
}

TEST(CallRules, ArithmeticOnWeightsInInitIsWorkInTheWrongPlace) {
  CaseTrace task = with_init("aten.cat.default", "weight");
  Finding found = beside(with_init("aten.mul.Tensor"), task);
  EXPECT_EQ(found.rule(), Rule::kWeightsComputed);
  EXPECT_EQ(human_text(found), cat(says(Rule::kWeightsComputed), ": aten.mul.Tensor"));
  EXPECT_TRUE(beside(with_init("aten.cat.default"), task).passed()) << "packing is not";
  EXPECT_TRUE(beside(with_init("aten.index.Tensor"), task).passed()) << "nor is another order";
  EXPECT_TRUE(beside(with_init("aten.mul.Tensor", "weight"), task).passed()) << "it gets the task's values";
  EXPECT_TRUE(beside(with_init("aten.mul.Tensor"), with_init("aten.mul.Tensor")).passed()) << "the task does so, too";
  EXPECT_TRUE(beside(with_init("aten.mul.Tensor"), task, CallRules::kMixed).passed());
  // Random numbers over a part of it, or none of them, hide nothing; over all of it, nothing is left to hide.
  auto then = [](std::vector<TraceStep> steps, TraceValue part = trace_value(4)) {
    CaseTrace trace = with_init("aten.mul.Tensor");
    trace.values.push_back(std::move(part));
    trace.values.push_back(trace_value(6));
    trace.init_steps += steps.size();
    if (steps.back().result.leaf == 6) trace.tape.back() = launch_step({0, 6, 1});
    trace.tape.insert(trace.tape.begin() + 3, steps.begin(), steps.end());
    return trace;
  };
  const std::vector<TraceStep> normal = {call_step("aten.slice.Tensor", {4}, 5),
                                         call_step("aten.normal_.default", {5}, 5)};
  EXPECT_FALSE(beside(then(normal, trace_value(4, {1, 8})), task).passed());
  TraceValue twice = trace_value(4, {8, 4});  // As many elements as there are, some of them the same.
  twice.stride = {1, 8};
  EXPECT_TRUE(beside(then(normal, twice), task).passed());
  twice.stride = {9, 0};
  twice.shape = {4, 8};
  twice.stride = {8, 0};
  EXPECT_FALSE(beside(then(normal, twice), task).passed());
  EXPECT_FALSE(beside(then({call_step("aten.normal.Tensor_float", {4}, 6)}), task).passed());
  EXPECT_FALSE(beside(then({call_step("aten.clone.default", {4}, 6)}), task).passed());
  EXPECT_TRUE(beside(then({call_step("aten.normal_.default", {4}, 4)}), task).passed());
  EXPECT_TRUE(beside(then({call_step("aten.fill_.Scalar", {4}, 4)}), task).passed());
  EXPECT_TRUE(beside(then({call_step("aten.randn_like.default", {4}, 6)}), task).passed());
  CaseTrace unused = with_init("aten.mul.Tensor");
  unused.tape.back() = launch_step({0, 1});
  EXPECT_TRUE(beside(unused, task).passed()) << "nobody takes the product";
}

// Rounding towards zero is arithmetic, whoever calls it a cast.
TEST(CallRules, CastsOfFractionsToWholeNumbersAreTheTasksToMake) {
  auto cast = [](Dtype from, Dtype to) {
    CaseTrace trace = roomy();
    trace.values[1].dtype = from;
    trace.values[2].dtype = to;
    trace.tape.push_back(call_step("aten._to_copy.default", {1}, 2));
    trace.outputs = leaf(2);
    return trace;
  };
  CaseTrace task = roomy();
  task.tape = {empty_y()};
  EXPECT_EQ(beside(cast(Dtype::kFloat32, Dtype::kInt64), task).rule(), Rule::kLibraryCalls);
  EXPECT_TRUE(beside(cast(Dtype::kInt32, Dtype::kInt64), task).passed());
  EXPECT_TRUE(beside(cast(Dtype::kInt32, Dtype::kFloat32), task).passed());
  EXPECT_TRUE(beside(cast(Dtype::kFloat32, Dtype::kFloat16), task).passed());
  EXPECT_TRUE(beside(cast(Dtype::kFloat32, Dtype::kInt64), cast(Dtype::kFloat32, Dtype::kInt64)).passed());
  EXPECT_EQ(beside(cast(Dtype::kInt64, Dtype::kBool), task).rule(), Rule::kLibraryCalls);
  EXPECT_EQ(beside(cast(Dtype::kInt64, Dtype::kUint8), task).rule(), Rule::kLibraryCalls);
  EXPECT_TRUE(beside(cast(Dtype::kInt64, Dtype::kInt32), task).passed()) << "indices, for a kernel";
  CaseTrace scattered = cast(Dtype::kFloat32, Dtype::kInt32);
  scattered.values.push_back(trace_value(4));
  scattered.values[4].dtype = Dtype::kInt32;
  scattered.tape.back() = call_step("aten.slice_scatter.default", {4, 1}, 2);
  scattered.tape.insert(scattered.tape.end() - 1, call_step("aten.zeros.default", {}, 4));
  EXPECT_EQ(beside(scattered, task).rule(), Rule::kLibraryCalls);
  CaseTrace into = cast(Dtype::kFloat32, Dtype::kInt32);
  into.tape.back() = call_step("aten.copy_.default", {2, 1}, 2);
  into.tape.insert(into.tape.end() - 1, call_step("aten.empty.memory_format", {}, 2));
  EXPECT_EQ(beside(into, task).rule(), Rule::kLibraryCalls);
}

// An operator that the task uses once may be used once, on as many weights; what an operator writes to on the side is
// made by it, and so is what gets a weight's name in another precision.
TEST(CallRules, WhatTheTaskItselfDoesInInitExcusesNothingElse) {
  CaseTrace task = with_init("aten.mul.Tensor", "weight", "aten.arange.default");
  EXPECT_TRUE(beside(with_init("aten.mul.Tensor", "own", "aten.arange.default"), task).passed());
  EXPECT_FALSE(beside(with_init("aten.mul.Tensor"), task).passed()) << "of two weights";
  CaseTrace again = with_init("aten.mul.Tensor", "own", "aten.arange.default");
  again.tape.insert(again.tape.begin() + 3, call_step("aten.mul.Tensor", {4, 3}, 4));
  ++again.init_steps;
  EXPECT_FALSE(beside(again, task).passed()) << "twice";
  CaseTrace aside = with_init("aten.native_batch_norm.default");
  aside.tape[4] = launch_step({0, 3, 1});
  EXPECT_FALSE(beside(aside, task).passed()) << "its statistics";
  CaseTrace other = with_init("aten.mm.default", "weight");
  task.values[4].dtype = Dtype::kFloat64;
  EXPECT_FALSE(beside(other, task).passed()) << "the task has another dtype";
}

// What hides where a product goes to, or where it comes from.
TEST(CallRules, ProductsOfWeightsAreFollowed) {
  CaseTrace task = with_init("aten.cat.default", "weight");
  auto through = [](const std::vector<TraceStep>& steps, int64_t used) {
    CaseTrace trace = with_init("aten.mul.Tensor");
    trace.values.push_back(trace_value(5));
    trace.values.push_back(trace_value(6));
    trace.tape.insert(trace.tape.begin() + 3, steps.begin(), steps.end());
    trace.init_steps += steps.size();
    trace.tape.back() = launch_step({0, used, 1});
    return trace;
  };
  const TraceStep room = call_step("aten.empty.memory_format", {}, 5);
  TraceStep helper = call_step("aten._cummax_helper.default", {4, 5}, 6);
  helper.result = {};
  helper.result.kind = Nest<int64_t>::Kind::kValue;
  EXPECT_FALSE(beside(through({room, helper}, 5), task).passed()) << "written on the side";
  TraceStep copy = helper;
  copy.op = "aten.copy_.default";
  std::swap(copy.args[0], copy.args[1]);
  EXPECT_FALSE(beside(through({room, copy}, 5), task).passed()) << "a step that says it gives nothing";
  EXPECT_FALSE(beside(through({call_step("aten.repeat_interleave.self_int", {4}, 5)}, 5), task).passed());
  CaseTrace square = with_init("aten.mul.Tensor");
  square.tape[2] = call_step("aten.mul.Tensor", {2, 2}, 4);
  CaseTrace scaled = with_init("aten.mul.Tensor", "weight");
  scaled.tape[2] = call_step("aten.mul.Scalar", {2}, 4);
  EXPECT_FALSE(beside(square, scaled).passed()) << "a scale is no square";
  // Which numbers are looked up may not depend on a weight.
  CaseTrace lookup = with_init("aten.index.Tensor");
  EXPECT_TRUE(beside(lookup, task).passed());
  lookup.values[3].dtype = Dtype::kInt64;
  EXPECT_FALSE(beside(lookup, task).passed());
}

// A parameter of the task's name excuses itself, and not what lies beside it.
TEST(CallRules, AParameterExcusesNoMoreThanItself) {
  CaseTrace task = with_init("aten.cat.default", "weight");
  CaseTrace part = with_init("aten.mul.Tensor", "weight");
  part.values.push_back(trace_value(4, {2, 8}));
  part.parameters[0].value = 5;
  part.tape.insert(part.tape.begin() + 3, call_step("aten.slice.Tensor", {4}, 5));
  ++part.init_steps;
  CaseTrace small = task;
  small.values[4] = trace_value(4, {2, 8});
  EXPECT_FALSE(beside(part, small).passed());
}

// Weights that begin as constants are weights: the judge moves them.
TEST(CallRules, ConstantsThatAreWeightsCount) {
  auto norm = [](const char* op) {
    CaseTrace trace = with_init(op, "scaled", "aten.ones.default");
    trace.tape[0] = call_step("aten.ones.default", {}, 2);
    return trace;
  };
  CaseTrace task = small_trace();
  task.values.push_back(trace_value(2));
  task.tape.insert(task.tape.begin(), call_step("aten.ones.default", {}, 2));
  task.init_steps = 1;
  TraceParameter weight;
  weight.name = "norm.weight";
  weight.value = 2;
  task.parameters = {weight};
  EXPECT_TRUE(beside(norm("aten.stack.default"), task).passed());
  EXPECT_FALSE(beside(norm("aten.add.Tensor"), task).passed());
  task.values[2].shape = {32};
  task.values[2].stride = {1};
  EXPECT_TRUE(beside(norm("aten.add.Tensor"), task).passed()) << "a table of its own";
  task.values[2] = trace_value(2);
  task.tape.insert(task.tape.begin() + 1, call_step("aten.tril_.default", {2}, 2));
  ++task.init_steps;
  EXPECT_TRUE(beside(norm("aten.add.Tensor"), task).passed()) << "a mask of the task's is not moved";
}

TEST(CallRules, Delegation) {
  CaseTrace trace = roomy();
  trace.tape.push_back(call_step("aten.relu.default", {1}, 2));
  trace.outputs = leaf(2);
  CallFinding strict = finding(trace), mixed = finding(trace, CallRules::kMixed);
  EXPECT_EQ(strict.finding.rule(), Rule::kLibraryCalls);
  EXPECT_EQ(strict.finding.told.operations.at(0).str(), "aten.relu.default");
  EXPECT_TRUE(mixed.finding.passed());
  EXPECT_EQ(mixed.delegated_ops, std::vector<std::string>{"aten.relu.default"});
}

TEST(CallRules, HostArithmeticIsNoDelegation) {
  CaseTrace trace = roomy();
  auto from = static_cast<int64_t>(trace.values.size()), to = from + 1;
  trace.values.push_back(trace_value(from, {2}));
  trace.values.push_back(trace_value(to, {}));
  TraceParameter sizes;
  sizes.name = "constant:0";
  sizes.value = from;
  sizes.has_bytes = true;
  sizes.initial = "8 bytes.";
  trace.parameters = {sizes};
  trace.tape.insert(trace.tape.begin(), call_step("aten.prod.default", {from}, to));
  EXPECT_EQ(message(trace), "");
  EXPECT_TRUE(finding(trace).delegated_ops.empty());
  trace.parameters[0].name = "weight";
  EXPECT_EQ(finding(trace).finding.rule(), Rule::kLibraryCalls) << "a weight is given";
  trace.parameters[0].name = "constant:0";
  trace.tape[0] = call_step("aten.prod.default", {0}, to);
  EXPECT_EQ(finding(trace).finding.rule(), Rule::kLibraryCalls) << "of an input, though nobody takes the result";
  trace.tape[0] = call_step("aten.prod.default", {from}, to);
  trace.tape.back() = launch_step({0, to, 1});
  EXPECT_EQ(finding(trace).finding.rule(), Rule::kLibraryCalls) << "a launch takes the result";
}

TEST(CallRules, DecoyWhoseResultIsThrownAway) {
  CaseTrace trace = roomy();  // The launch writes y, the output is computed from x alone.
  trace.tape = {empty_y(), launch_step({1}), call_step("aten.relu.default", {0}, 2)};
  trace.outputs = leaf(2);
  EXPECT_EQ(message(trace, CallRules::kMixed), "no Triton launch reaches an output");
}

TEST(CallRules, AllocationTakesShapesOnly) {
  CaseTrace trace = roomy();
  trace.tape.push_back(call_step("aten.ones_like.default", {1}, 2));
  trace.outputs = leaf(2);
  EXPECT_EQ(message(trace), "no Triton launch reaches an output");
}

TEST(CallRules, OverwritingWhatTheLaunchWroteUndoesIt) {
  CaseTrace trace = roomy();
  trace.tape = {empty_y(), launch_step({1}), call_step("aten.relu.default", {0}, 2),
                call_step("aten.copy_.default", {1, 2}, 1)};
  EXPECT_EQ(message(trace, CallRules::kMixed), "no Triton launch reaches an output");
  // Overwriting half of it does not.
  trace.values[3] = trace_value(1, {2, 8});
  trace.values.push_back(trace_value(2, {2, 8}));
  trace.tape[3] = call_step("aten.slice.Tensor", {1}, 3);
  trace.tape.push_back(call_step("aten.slice.Tensor", {2}, 4));
  trace.tape.push_back(call_step("aten.copy_.default", {3, 4}, 3));
  EXPECT_TRUE(finding(trace, CallRules::kMixed).finding.passed());
}

TEST(CallRules, OutputThatIsAnInput) {
  CaseTrace trace = small_trace();
  trace.tape[1] = launch_step({1});
  trace.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(1), leaf(0)});
  EXPECT_EQ(message(trace), "an output is one of the inputs");
}

// What __init__ and get_inputs() do is theirs, and no work of forward().
TEST(CallRules, StepsBeforeForward) {
  CaseTrace trace = roomy();
  trace.parameters.resize(1);
  trace.parameters[0].name = "w";
  trace.parameters[0].value = 2;
  trace.tape = {call_step("aten.normal.default", {}, 2), call_step("aten.randn.default", {}, 0), empty_y(),
                launch_step({0, 2, 1})};
  trace.init_steps = trace.input_steps = 1;
  EXPECT_EQ(message(trace), "");
  EXPECT_TRUE(finding(trace).delegated_ops.empty());
  trace.tape[3] = launch_step({0, 1});
  trace.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(1), leaf(2)});
  EXPECT_EQ(message(trace), "an output is one of the inputs");
  trace.tape.insert(trace.tape.begin() + 1, launch_step({2}));
  trace.init_steps = 2;
  EXPECT_EQ(message(trace, CallRules::kMixed), "Triton kernels are launched in __init__");
}

TEST(CallRules, Plumbing) {
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
}  // namespace tritonrl::call_rules_test
