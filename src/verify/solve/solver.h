// SPDX-License-Identifier: Apache-2.0
// Solver: a Triton solution for any recorded module whose operators the synthesiser knows, or why there is none.
//
// The reference's trace becomes a graph (recorded_graph.h), the graph kernels (data/synth/), and ModelNew keeps the
// constructor of Model (data/module_frame.h). What is written is no more than a proposal: Verifier::verify_solutions
// says whether it is one.
#pragma once

#include <string>

#include "verify/verifier.h"

namespace tritonrl {

struct Proposal {
  std::string solution;       // A whole file with ModelNew, "" = none.
  std::string kind, problem;  // Why there is none: "unrecordable", "constructor", "plan", or as in RecordedGraph.
  std::string graph;          // TensorGraph::hash() of what was recorded; "" where there is no graph.
};

// Blocks: records the reference, at its tiny and larger sizes as well where the task has such; where it has none, looks
// for some (verify/variants.h). Throws Error (environment) when the worker is lost twice. Thread rule: any thread.
Proposal propose_solution(Verifier& verifier, const Task& task);

// Judges candidates at the tiny sizes of their tasks alone, where they have some: what the interpreter can run.
class TinyCases : public CaseSource {
 public:
  explicit TinyCases(int64_t seeds) : seeds_(seeds) {}
  std::vector<CaseSpec> cases(const Task& task) const override { return {{"full", task.tiny, false, seeds_}}; }

 private:
  int64_t seeds_;
};

}  // namespace tritonrl
