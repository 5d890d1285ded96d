// SPDX-License-Identifier: Apache-2.0
#include "verify/detectors.h"

#include <string>
#include <utility>

namespace tritonrl {

namespace {

// How the checks word their messages (plan_policy.cpp, funnel.cpp, gpu_path.cpp, worker/kernel_rules.py, compile.py).
constexpr std::pair<const char*, const char*> kWordings[] = {
    {"no Triton kernel is launched", "no_launch"},
    {"every Triton launch has an empty grid", "empty_grid"},
    {"Triton kernels are launched in __init__", "launch_in_init"},
    {"library calls do part of the work", "library_calls"},
    {"no Triton launch reaches an output", "output_not_reached"},
    {"an output is one of the inputs", "output_is_input"},
    {"the result is the same without the Triton launches", "same_without_launches"},
    {"a kernel may not use", "kernel_text"},
    {"the text of a kernel is not one function", "kernel_text"},
    {"inline assembly declares memory of its own", "kernel_text"},
    {"it ends sooner than its outputs could have been written", "too_fast"},
};

}  // namespace

const char* detector_of(const Verdict& verdict) {
  bool forged = verdict.outcome == Outcome::kTampered;
  if (!forged && verdict.outcome != Outcome::kRuleBreak) return "";
  std::string reason = verdict.reason();
  for (const auto& [wording, name] : kWordings) {
    if (reason.find(wording) != std::string::npos) return name;
  }
  return forged ? "forged_result" : "other_rule";
}

}  // namespace tritonrl
