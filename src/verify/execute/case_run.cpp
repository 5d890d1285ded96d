// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/case_run.h"

#include "base/text.h"

namespace tritonrl {
namespace {

Finding end_of(const CaseResult& result, const CaseSpec& spec) {
  if (result.skipped || result.finding.passed()) return {};
  Finding ended = result.finding;
  if (spec.additional) ended.told.case_name = spec.name;
  return ended;
}

}  // namespace

Precision precision_of(const CaseSpec& spec, Tolerance tolerance, Products products) {
  if (tolerance == Tolerance::kKernelBench) return Precision::kKernelBench;
  if (!spec.other_precision) {
    return products == Products::kTf32 && tolerance == Tolerance::kTf32 ? Precision::kProducts : Precision::kOwn;
  }
  return products != Products::kNone ? Precision::kOtherProducts : Precision::kOther;
}

Tolerance tolerance_of(Precision precision) {
  if (precision == Precision::kKernelBench) return Tolerance::kKernelBench;
  return precision == Precision::kProducts ? Tolerance::kTf32 : Tolerance::kFp32;
}

CaseResult skipped_case(const CaseSpec& spec, const std::string& why) { return {spec.name, {}, {}, why}; }

CaseResult failed_before_it_ran(const CaseSpec& spec, const Finding& failed) {
  Outcome outcome = failed.outcome();
  bool ours = outcome == Outcome::kHarnessFault || outcome == Outcome::kTampered || outcome == Outcome::kRuleBreak ||
              outcome == Outcome::kTimeout;
  if (!spec.other_precision || ours) return {spec.name, failed, {}, {}};
  return skipped_case(spec, cat("it is not written for that precision: ", human_text(failed)));
}

Finding run_cases(const std::vector<CaseSpec>& cases, const DecidedCases& decided, std::vector<CaseResult>* results,
                  const std::function<void(const CaseSpec& spec, bool first)>& run) {
  Finding first_failure;
  bool first = true;
  for (const CaseSpec& spec : cases) {
    if (spec.tiny) continue;
    if (auto known = decided.find(spec.name); known != decided.end()) {
      if (!spec.instead_of.empty() && known->second.skipped) continue;  // Nobody misses it.
      results->push_back(known->second);
    } else {
      results->push_back({spec.name, {}, {}, {}});
      run(spec, first);
      first = false;
    }
    Finding ended = end_of(results->back(), spec);
    if (first_failure.passed()) first_failure = ended;
    bool ours = ended.outcome() == Outcome::kHarnessFault;
    if (ours || (!ended.passed() && !spec.additional)) return ended;
  }
  return first_failure;
}

}  // namespace tritonrl
