// SPDX-License-Identifier: Apache-2.0
// Recording: the answer to a `record` job, parsed and held against what the oracle said; and the `interpret` jobs made
// from it. Everything in it came out of a process that ran the candidate's code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "verify/case_source.h"
#include "verify/oracle.h"
#include "verify/plan.h"

namespace tritonrl {

struct Recording {
  PlanFile file;
  std::map<std::string, Finding> failed;         // Additional cases in which the candidate failed.
  const Plan& plan(const CaseSpec& spec) const;  // REQUIRES: a case that was asked for and did not fail.
};

// A case as it is asked for: what to rebind, and the oracle's answer for its first input.
struct CaseRequest {
  CaseSpec spec;
  std::shared_ptr<const OracleAnswer> oracle;
};

Json record_arguments(const Task& task, const std::string& code, int64_t weight_seed,
                      const std::vector<CaseRequest>& requests);

// Strict: bytes that are a recording, of every case asked for (but for additional ones that failed) and no other; with
// inputs and parameters of the shapes and dtypes that were asked for, and nothing computed before forward().
Parsed<Recording> parse_recording(const Blob& blob, const std::vector<CaseRequest>& requests);

// The parameters' values to run with, in the order of the plan's parameters: the oracle's (perturbed) value for one of
// the same name, shape and dtype; else that of a remaining one with the same initial bytes, in order; else its own.
std::vector<BlobView> match_parameters(const Plan& plan, const OracleAnswer& oracle);

// The payload is the recording's bytes, then the tensors.
struct InterpretRequest {
  Json args;
  std::string payload;
};
InterpretRequest interpret_arguments(const Recording& recording, const Plan& plan, const OracleAnswer& oracle,
                                     uint64_t poison, int64_t max_programs, bool with_launches);

// The answer to an `interpret` job.
struct Interpretation {
  Blob blob;
  Nest<BlobView> outputs;
  std::vector<std::optional<BlobView>> inputs_after;  // Empty for an input that did not change.
  int64_t programs = 0;
  bool guards_intact = true;  // Nothing was written outside of the tensors.
};
Parsed<Interpretation> parse_interpretation(Blob blob, const OracleAnswer& oracle);

}  // namespace tritonrl
