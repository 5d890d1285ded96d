// SPDX-License-Identifier: Apache-2.0
// Call rules: what a trace's data flow says about who did the work.
//
// `strict`: host code may allocate, view, copy, cast and re-arrange, and reckon with numbers that depend on nothing it
// was given and go nowhere else (torch.prod of a shape); every other library call is delegation and breaks the rules.
// `mixed`: library calls are allowed, and listed. In both, at least one launch must reach an output: taint starts at
// the storages a launch is given (it may write any of them) and flows through the tape.
//
// What __init__ makes of weights is held to `strict` as well: it may pack, transpose and cast them, and do what the
// task's own __init__ does; arithmetic beyond that, of which forward() uses the result, is work in the wrong place.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "verify/finding.h"
#include "verify/trace/trace.h"

namespace tritonrl {

enum class CallRules { kStrict, kMixed };
constexpr auto enum_names(CallRules) { return std::array{"strict", "mixed"}; }

struct CallFinding {
  Finding finding;                         // Which rule is broken; kPass when none is.
  std::vector<std::string> delegated_ops;  // Sorted, each once.
};
// `reference`: the task's own trace of that case; null = its __init__ is not looked at.
CallFinding check_calls(const CaseTrace& trace, CallRules rules, const CaseTrace* reference = nullptr);

// True for "aten.empty.memory_format" and the like: allocation, view, copy, cast, layout.
bool is_plumbing(const std::string& op);

}  // namespace tritonrl
