// SPDX-License-Identifier: Apache-2.0
// Choices: which configurations of an autotuner are run on the smallest case, and what they are called.
//
// A trace holds every configuration of a launch. The first is what all cases are run with; the others are run one after
// the other on the smallest case, those of several launches side by side: run r takes the r-th of each. Configurations
// that come to the same here (without a GPU, those that differ in warps and stages alone) are one.
#pragma once

#include <string>
#include <vector>

#include "verify/trace/trace.h"

namespace tritonrl {

constexpr size_t kMostChoiceRuns = 8;  // Beyond the first configuration; those left are named in the verdict.

struct ChoiceRun {
  std::vector<int64_t> choices;  // By launch with several configurations, in order.
  std::string name;              // "matmul_kernel: BLOCK_M = 64, num_warps = 8".
  double growth = 1;             // How many times as many programs there are as with the first ones.
  bool asked = true;             // Within the limit.
};
// `warps`: configurations that differ in warps and stages alone are different.
std::vector<ChoiceRun> choice_runs(const TraceFile& file, const CaseTrace& trace, bool warps);

// In what the chosen configurations differ from the first ones.
std::string choice_name(const TraceFile& file, const CaseTrace& trace, const std::vector<int64_t>& choices);

}  // namespace tritonrl
