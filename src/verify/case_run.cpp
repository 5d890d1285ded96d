// SPDX-License-Identifier: Apache-2.0
#include "verify/case_run.h"

#include "base/text.h"

namespace tritonrl {
namespace {

StageEnd end_of(const CaseResult& result, const CaseSpec& spec) {
  if (!result.outcome || *result.outcome == Outcome::kPass) return {};
  return {*result.outcome, spec.additional ? cat("case ", spec.name, ": ", result.message) : result.message};
}

}  // namespace

std::string with_sizes(const CaseSpec& spec) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : spec.constants) parts.push_back(cat(name, " = ", value));
  return parts.empty() ? "" : cat(" (with ", join(parts, ", "), ")");
}

Precision precision_of(const CaseSpec& spec, const std::string& code) {
  bool products = code.find("dot(") != std::string::npos || code.find("dot_scaled(") != std::string::npos;
  if (!spec.other_precision) return Precision::kOwn;
  return products ? Precision::kOtherProducts : Precision::kOther;
}

CaseResult failed_before_it_ran(const CaseSpec& spec, const StageEnd& failed) {
  bool ours = failed.outcome == Outcome::kHarnessFault || failed.outcome == Outcome::kTampered ||
              failed.outcome == Outcome::kRuleBreak || failed.outcome == Outcome::kTimeout;
  if (!spec.other_precision || ours) return {spec.name, failed.outcome, failed.message, std::nullopt};
  return {spec.name, std::nullopt, cat("it is not written for that precision: ", failed.message), std::nullopt};
}

StageEnd run_cases(const std::vector<CaseSpec>& cases, const SettledCases& settled, std::vector<CaseResult>* results,
                   const std::function<void(const CaseSpec& spec, bool first)>& run) {
  StageEnd first_failure;
  bool first = true;
  for (const CaseSpec& spec : cases) {
    if (spec.tiny) continue;
    if (auto known = settled.find(spec.name); known != settled.end()) {
      if (!spec.instead_of.empty() && !known->second.outcome) continue;  // Nobody misses it.
      results->push_back(known->second);
    } else {
      results->push_back({spec.name, Outcome::kPass, "", std::nullopt});
      run(spec, first);
      first = false;
    }
    StageEnd ended = end_of(results->back(), spec);
    if (first_failure.outcome == Outcome::kPass) first_failure = ended;
    bool ours = ended.outcome == Outcome::kHarnessFault;
    if (ours || (ended.outcome != Outcome::kPass && !spec.additional)) return ended;
  }
  return first_failure;
}

}  // namespace tritonrl
