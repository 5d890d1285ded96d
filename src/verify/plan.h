// SPDX-License-Identifier: Apache-2.0
// Plan: what the recorder wrote down of one forward call, and what the policy says about it.
//
// A Plan is an SSA tape of ATen calls and Triton launches over values (tensors), which are views of storages. It comes
// out of a process that ran the candidate's code, so it is parsed strictly: unknown members, dangling ids, views beyond
// their storage, values used before they exist are all `tampered`. A plan that parses is safe to *describe* (its sizes
// and counts are bounded); it is still run in a sandbox only.
//
// Policy. `strict`: host code may allocate, view, copy, cast and re-arrange; every other library call is delegation and
// breaks the rules. `mixed`: library calls are allowed, and listed. In both, at least one launch must reach an output:
// taint starts at the storages a launch is given (it may write any of them) and flows through the tape.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "verify/blob.h"

namespace tritonrl {

struct PlanValue {
  int64_t id = 0;
  std::vector<int64_t> shape, stride;  // In elements.
  int64_t offset = 0;                  // In elements of this value's dtype, from the start of its storage.
  Dtype dtype = Dtype::kFloat32;
  int64_t storage = 0;

  int64_t end_byte() const;  // Just past the last byte it touches, from the start of its storage.
};

struct PlanStep {
  bool is_launch = false;
  std::string op;                 // "aten.mul.Tensor"; ATen steps only.
  int64_t kernel = -1;            // Launches only.
  std::array<int64_t, 3> grid{};  // Launches only.
  std::vector<int64_t> reads;     // Ids of all values among the arguments, in order.
  std::vector<int64_t> outs;      // ATen steps only.
};

struct Plan {
  std::map<int64_t, PlanValue> values;
  std::vector<int64_t> inputs;  // Value ids; -1 for an input that is not a tensor.
  std::vector<std::pair<std::string, int64_t>> parameters;
  std::vector<PlanStep> tape;
  Nest<int64_t> outputs;
  Json json;  // As it came, to be handed to the interpreter; holds nothing beyond what was checked.

  int64_t launches() const;
};

// `kernels` and `cubins`: how many the recording holds; indices are checked against them.
Parsed<Plan> parse_plan(const Json& json, int64_t kernels, int64_t cubins);

// The same plan with its launches left out: the kill switch. Its outputs must differ, or Triton did nothing.
Json without_launches(const Plan& plan);

enum class CallPolicy { kStrict, kMixed };

struct PolicyFinding {
  bool ok = true;
  std::string message;                     // Which rule is broken; "" when ok.
  std::vector<std::string> delegated_ops;  // Sorted, each once.
};
PolicyFinding check_policy(const Plan& plan, CallPolicy policy);

// True for "aten.empty.memory_format" and the like: allocation, view, copy, cast, layout.
bool is_plumbing(const std::string& op);

}  // namespace tritonrl
