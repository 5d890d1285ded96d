// SPDX-License-Identifier: Apache-2.0
// StageEnd: how a stage, or a job that a stage needed, ended.
#pragma once

#include <string>

#include "base/text.h"
#include "verify/case_source.h"
#include "verify/verdict.h"

namespace tritonrl {

struct StageEnd {
  Outcome outcome = Outcome::kPass;
  std::string message;
};

// What a case's result means for the stage it belongs to: a skipped one passes.
inline StageEnd case_end(const CaseResult& result, const CaseSpec& spec) {
  if (!result.outcome || *result.outcome == Outcome::kPass) return {};
  return {*result.outcome, spec.additional ? cat("case ", spec.name, ": ", result.message) : result.message};
}

}  // namespace tritonrl
