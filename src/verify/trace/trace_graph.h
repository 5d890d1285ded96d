// SPDX-License-Identifier: Apache-2.0
// TraceGraph: what the trace of a reference says about a task: its operator graph as a content hash, and its level.
//
// The hash is that of the expression forward() returns (a Merkle hash over the tape, from the outputs back): names, the
// order of independent lines, dead code and sizes are not part of it. Inputs count by position, weights by rank. An
// integer among an operator's arguments is a size, and left out, when it is 8 or more and a dimension of one of the
// operator's tensors; so are all those of views. Equal computations may hash apart (x + x and 2 * x); unequal ones meet
// only where they differ in sizes alone.
#pragma once

#include <string>
#include <vector>

#include "data/tasks/task.h"
#include "verify/trace/trace.h"

namespace tritonrl {

struct GraphHashes {
  std::string graph;  // "trace:" and 32 hex digits.
  std::string loose;  // The same without any number among the arguments.
};
// REQUIRES: a trace of a reference (its own values are told from the given ones by init_steps and input_steps).
GraphHashes graph_hashes(const CaseTrace& trace);

// Calls of forward() that compute: no allocation, view, copy, cast or layout (is_plumbing), no launch.
int64_t count_compute_ops(const CaseTrace& trace);

// "aten.relu_.default" -> "relu_".
std::string call_name(const std::string& op);

// Does this operator multiply matrices, as such or within a convolution, an attention or a recurrent layer?
bool is_product(const std::string& op);

// Does forward() multiply matrices, as such or within a convolution, an attention or a recurrent layer?
bool has_products(const CaseTrace& trace);

// Does forward() draw random numbers (dropout that is on, say)? Then no answer is the right one.
bool draws_random_numbers(const CaseTrace& trace);

// The level rule (docs/data.md): 1 compute op -> 1, up to kMaxFusion -> 2, more -> 3. Without any: 1.
constexpr int64_t kMaxFusion = 10;
int level_of(int64_t compute_ops);

Recorded describe(const CaseTrace& trace);

// Of the outputs, leaf by leaf.
std::vector<Dtype> output_dtypes(const CaseTrace& trace);

}  // namespace tritonrl
