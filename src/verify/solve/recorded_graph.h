// SPDX-License-Identifier: Apache-2.0
// RecordedGraph: the trace of a task's reference as a TensorGraph, which the synthesiser's planner and writer turn into
// kernels, and whose hash says what a module computes.
//
// A trace has numbers where a graph has symbols. The same reference is recorded at several sizes, and a dimension goes
// by the sizes that it has in all of them: dimensions of inputs and weights that are always alike share one symbol, and
// any other is an expression in those ("H // 2") that gives the recorded size each time. What could be told apart only
// at sizes that nobody recorded is not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/synth/tensor_graph.h"
#include "verify/trace/trace.h"

namespace tritonrl {

struct RecordedGraph {
  graphs::TensorGraph graph;
  std::vector<int> inputs;                // By argument of forward(): its node, or -1: a number.
  std::map<size_t, double> numbers;       // By argument of forward(): the number that get_inputs() gives.
  std::map<int, std::string> parameters;  // By node: its name in state_dict().
  std::string kind;     // "" = there is a graph; else why not: "operator", "form", "sizes", "dtype", "in_place",
                        // "inputs", "outputs".
  std::string problem;  // The same for people: "aten.lstm.input".
};

// Of all cases of a recorded reference, the first of which says what is "full" and the second what is "tiny" in the
// graph's sizes. A case that called other operations than the first is left out. Never throws. Thread rule: any thread.
// REQUIRES: a reference's trace with a case.
RecordedGraph read_graph(const TraceFile& recorded);

// What a reference computes: graphs::outline() and outline_operators() of its graph; where it has none, "calls:" and a
// hash of the operators that forward() calls, and their names.
struct Computed {
  std::string outline;
  std::vector<std::string> operators;  // Sorted.
};
// REQUIRES: as read_graph().
Computed computed_by(const TraceFile& recorded);

}  // namespace tritonrl
