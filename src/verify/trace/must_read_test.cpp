// SPDX-License-Identifier: Apache-2.0
// Bytes that a task must read: those of inputs and weights that nobody can do without, and no others.
#include "verify/trace/must_read.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace tritonrl::must_read_test {
namespace {

// x (value 0) and w (value 1, a parameter) of 4 x 8 float32, which are 128 bytes each; values 2, 3, ... of the same
// size.
CaseTrace task(std::vector<TraceStep> steps, int64_t output) {
  CaseTrace trace;
  trace.name = "full";
  for (int64_t id = 0; id < 6; ++id) trace.values.push_back(trace_value(id, {4, 8}));
  trace.inputs.resize(1);
  trace.inputs[0].value = 0;
  trace.parameters.resize(1);
  trace.parameters[0].name = "w";
  trace.parameters[0].value = 1;
  for (TraceStep& step : steps) {
    for (const TraceArg& arg : step.args) step.reads.push_back(arg.number);
    visit_leaves(step.result, [&](int64_t id) { step.outs.push_back(id); });
  }
  trace.tape = std::move(steps);
  trace.outputs = leaf(output);
  return trace;
}

TEST(MustRead, WhatGoesIntoTheResultIsRead) {
  auto mul = call_step("aten.mul.Tensor", {0, 1}, 2), relu = call_step("aten.relu_.default", {2}, 2);
  EXPECT_EQ(bytes_to_read(task({mul, relu}, 2)), 256);
  EXPECT_EQ(bytes_to_read(task({call_step("aten.sum.dim_IntList", {0}, 2)}, 2)), 128);
  EXPECT_EQ(bytes_to_read(task({call_step("aten.mul.Tensor", {0, 0}, 2)}, 2)), 128);
  EXPECT_EQ(bytes_to_read(task({mul, call_step("aten.exp.default", {0}, 3)}, 3)), 128) << "w is of no use";
  EXPECT_EQ(bytes_to_read(task({call_step("aten.permute.default", {0}, 2)}, 2)), 0) << "nothing is computed";
}

TEST(MustRead, ThroughViewsOfItsMemory) {
  CaseTrace trace = task({call_step("aten.t.default", {0}, 2), call_step("aten.linear.default", {2, 1}, 3)}, 3);
  trace.values[2].storage = 0;
  EXPECT_EQ(bytes_to_read(trace), 256);
  trace.values[0].stride = {0, 1};  // Every row is the same.
  EXPECT_EQ(bytes_to_read(trace), 128 + 32);
}

TEST(MustRead, NothingWhereSomethingMightBeLeftOut) {
  auto mul = call_step("aten.mul.Tensor", {0, 1}, 2);
  for (const char* op :
       {"aten.slice.Tensor", "aten.index.Tensor", "aten.where.self", "aten.tril.default", "aten.convolution.default",
        "aten.embedding.default", "aten.select.int", "aten.sum.IntList_out", "aten.some_operation.default",
        "aten.copy_.default", "aten.zeros_like.default"}) {
    EXPECT_EQ(bytes_to_read(task({mul, call_step(op, {2}, 3)}, 3)), 0) << op;
  }
  EXPECT_EQ(bytes_to_read(task({mul, launch_step({2, 3})}, 3)), 0);
}

TEST(MustRead, ACacheMayHoldWhatIsReadBeforeAndWhatIsWrittenAfter) {
  EXPECT_EQ(least_traffic(100, 100, 0), 200);
  EXPECT_EQ(least_traffic(100, 100, 30), 140);
  EXPECT_EQ(least_traffic(100, 20, 30), 70);
  EXPECT_EQ(least_traffic(20, 20, 30), 0);
}

}  // namespace
}  // namespace tritonrl::must_read_test
