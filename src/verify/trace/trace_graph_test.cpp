// SPDX-License-Identifier: Apache-2.0
// What a reference's operations say about its task.
#include "verify/trace/trace_graph.h"

#include <gtest/gtest.h>

#include "support/trace_writer.h"

namespace tritonrl::trace_graph_test {
namespace {

// forward() calls `op`; __init__ draws its weights.
CaseTrace calling(const char* op) {
  CaseTrace trace = small_trace();
  trace.tape = {call_step("aten.randn.default", {}, 0), call_step("aten.linear.default", {0}, 0),
                call_step(op, {0}, 1)};
  trace.init_steps = 2;
  return trace;
}

TEST(TraceGraph, RandomNumbersOfForward) {
  for (const char* op : {"aten.dropout.default", "aten.rand.default", "aten.bernoulli_.float",
                         "aten.multinomial.default", "aten.native_dropout.default", "aten.exponential_.default"}) {
    EXPECT_TRUE(draws_random_numbers(calling(op))) << op;
  }
  for (const char* op : {"aten.relu.default", "aten.layer_norm.default", "aten.scaled_dot_product_attention.default"}) {
    EXPECT_FALSE(draws_random_numbers(calling(op))) << op;
  }
}

TEST(TraceGraph, ProductsOfForward) {
  for (const char* op :
       {"aten.mm.default", "aten.linear.default", "aten.conv2d.padding", "aten.convolution.default",
        "aten.scaled_dot_product_attention.default", "aten.lstm.input", "aten.linalg_vecdot.default"}) {
    EXPECT_TRUE(has_products(calling(op))) << op;
  }
  for (const char* op : {"aten.mul.Tensor", "aten.sum.dim_IntList", "aten.softmax.int", "aten.cumsum.default"}) {
    EXPECT_FALSE(has_products(calling(op))) << op;
  }
}

}  // namespace
}  // namespace tritonrl::trace_graph_test
