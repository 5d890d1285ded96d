// SPDX-License-Identifier: Apache-2.0
// What a trace's __init__ leaves for forward().
#include "verify/trace/init_values.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace tritonrl::init_values_test {
namespace {

using Ids = std::vector<int64_t>;

CaseTrace parsed(const CaseTrace& trace) {
  auto file = parse_written(file_of({trace}));
  EXPECT_TRUE(file) << file.why;
  return file ? file.value->cases[0] : CaseTrace();
}
InitValues values_of(const CaseTrace& trace) { return init_values(parsed(trace)); }
bool more_of(const CaseTrace& trace, const Ids& ids) { return makes_more_of(parsed(trace), values_of(trace), ids); }

// __init__ makes 2, overwrites it, views it as 3 and copies it to 4; forward's kernel reads 3 and 4.
CaseTrace packed() {
  CaseTrace trace = small_trace();
  for (int64_t id : {2, 2, 4}) trace.values.push_back(trace_value(id));
  trace.values[4].storage = 4;
  trace.tape = {call_step("aten.empty.memory_format", {}, 2),  //
                call_step("aten.normal_.default", {2}, 2),     //
                call_step("aten.view.default", {2}, 3),        //
                call_step("aten.clone.default", {3}, 4),       //
                call_step("aten.empty_like.default", {0}, 1),  //
                launch_step({0, 3, 4, 1})};
  trace.init_steps = 4;
  TraceParameter weight;
  weight.name = "weight";
  weight.value = 2;
  trace.parameters = {weight};
  return trace;
}

TEST(InitValues, WhatForwardFindsBesideItsParameters) {
  InitValues made = values_of(packed());
  EXPECT_EQ(made.used, (Ids{3, 4}));
  EXPECT_EQ(made.whole, (std::map<int64_t, size_t>{{2, 1}, {3, 2}, {4, 3}}));
  CaseTrace returned = packed();
  returned.tape.back() = launch_step({0, 1});
  EXPECT_EQ(values_of(returned).used, Ids{});
  returned.outputs = group(Nest<int64_t>::Kind::kTuple, {leaf(1), leaf(4)});
  EXPECT_EQ(values_of(returned).used, Ids{4});
}

TEST(InitValues, ACopyIsMoreAndAViewIsNot) {
  CaseTrace trace = packed();
  EXPECT_TRUE(more_of(trace, {2}));
  EXPECT_FALSE(more_of(trace, {4}));
  trace.tape[3] = call_step("aten.randn.default", {}, 4);
  EXPECT_FALSE(more_of(trace, {2}));
  // What is read before it is complete is made of something else.
  trace.tape[1] = call_step("aten.clone.default", {2}, 4);
  trace.tape[3] = call_step("aten.normal_.default", {3}, 3);
  EXPECT_FALSE(more_of(trace, {2}));
}

TEST(InitValues, WeightsOfLayersThatAreNoModules) {
  CaseTrace trace = packed();
  EXPECT_EQ(like_parameters(parsed(trace), values_of(trace), parsed(trace)), Ids{4}) << "3 is the parameter";
  CaseTrace other = packed();
  for (TraceValue& value : other.values) value.dtype = Dtype::kFloat16;
  EXPECT_EQ(like_parameters(parsed(trace), values_of(trace), parsed(other)), Ids{4}) << "before it is cast";
  for (TraceValue& value : other.values) value.dtype = Dtype::kInt32;
  EXPECT_EQ(like_parameters(parsed(trace), values_of(trace), parsed(other)), Ids{});
}

TEST(InitValues, WhatWrites) {
  auto written = [](const char* op) {
    TraceStep step;
    step.op = op;
    step.reads = {5, 6};
    return written_by(step);
  };
  for (const char* op : {"aten.normal_.default", "aten.copy_.default"}) EXPECT_EQ(written(op), Ids{5}) << op;
  for (const char* op : {"aten.mm.out", "aten.native_batch_norm.default", "aten._foreach_mul.List",
                         "aten._cummax_helper.default", "aten.fused_moving_avg_obs_fake_quant.default"}) {
    EXPECT_EQ(written(op), (Ids{5, 6})) << op;
  }
  for (const char* op : {"aten.mm.default", "aten.view.default", "aten", ""}) EXPECT_EQ(written(op), Ids{}) << op;
}

// A module's weights are cast after __init__: what was made of them before that is made of the originals.
TEST(InitValues, TheOriginalOfACastIsOfTheSameWeight) {
  CaseTrace trace = packed();
  trace.values[4].dtype = Dtype::kFloat16;
  trace.tape[3] = call_step("aten._to_copy.default", {2}, 4);
  EXPECT_EQ(cast_from(parsed(trace), 4), 2);
  EXPECT_EQ(cast_from(parsed(trace), 2), -1);
  EXPECT_FALSE(more_of(trace, {2, 4})) << "it is known itself";
  EXPECT_TRUE(more_of(trace, {2}));
}

// A weight is complete before it is copied from.
TEST(InitValues, TheSourceOfACopyIsNotWritten) {
  CaseTrace trace = packed();
  trace.tape[3] = call_step("aten.copy_.default", {4, 3}, 4);
  trace.tape.insert(trace.tape.begin(), call_step("aten.empty.memory_format", {}, 4));
  trace.init_steps = 5;
  EXPECT_EQ(values_of(trace).whole.at(2), 2u);
  EXPECT_TRUE(more_of(trace, {2}));
}

}  // namespace
}  // namespace tritonrl::init_values_test
