// SPDX-License-Identifier: Apache-2.0
// The cases of full_run, one after the other: the same with a GPU and without.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "verify/execute/case_source.h"
#include "verify/execute/compare.h"
#include "verify/verdict.h"

namespace tritonrl {

// By case: results that are known before it would be run. Skipped ones have no outcome.
using DecidedCases = std::map<std::string, CaseResult>;

// How the compiled kernels of a candidate multiply matrices, where the task does too: kNone = exactly, or not at all.
enum class Products { kNone, kTf32, kRounded };

// What a candidate's outputs are held to in a case.
Precision precision_of(const CaseSpec& spec, Tolerance tolerance, Products products);
// What a verdict calls that.
Tolerance tolerance_of(Precision precision);

CaseResult skipped_case(const CaseSpec& spec, const std::string& why);

// What a candidate that failed in a case before it was run is told: its failure, or, in another precision than the one
// it was written for, that the case is skipped. Triton's own functions refuse half precision, and a right answer under
// the task's contract need not be one beyond it; what does compile there has to be right.
CaseResult failed_before_it_ran(const CaseSpec& spec, const Finding& failed);

// Appends a result for every case that is not tiny: the decided one, or a pass that `run` changes as it finds out (in
// results->back()). The stage ends as the first case that did not pass. After a failure in an ordinary case, or of
// ours, nothing else is looked at; after one in an additional case the rest is. `run` is told whether this is the first
// case that is run.
Finding run_cases(const std::vector<CaseSpec>& cases, const DecidedCases& decided, std::vector<CaseResult>* results,
                  const std::function<void(const CaseSpec& spec, bool first)>& run);

}  // namespace tritonrl
