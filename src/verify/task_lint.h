// SPDX-License-Identifier: Apache-2.0
// TaskLint: what makes a task of no use, found by running its reference twice and its controls once.
//
//   unrecordable       the recorder cannot follow it, so no candidate can be timed against it
//   fails              the reference raises, takes too long or returns what cannot be compared
//   out_of_memory      it does not fit into verify.memory_mb
//   nondeterministic   two runs under one seed differ by more than the comparison allows
//   seed_invariant     get_inputs() gives the same tensors whatever the seed
//   input_independent  other inputs, same outputs: a constant would pass
//   zero, constant     every output is zero; every output is one number all over
//   uniform            an output is the same all along one of its axes (of 2 or more)
//   noise_level        the reference's own rounding is 1 % or more of its output
//   absolute           every output lies within 0.01 of zero: zeros would pass under a common absolute tolerance
//   control            zeros, negated or rotated outputs pass our comparison
//   drop               leaving out one operation passes our comparison
#pragma once

#include <string>
#include <vector>

#include "verify/verifier.h"

namespace tritonrl {

struct LintFlag {
  std::string flag, detail;
};

struct LintReport {
  std::string task_id;
  int level = 1;
  std::map<std::string, int64_t> sizes;  // What it was run with; empty = as written.
  std::vector<LintFlag> flags;
  int64_t controls = 0;  // Operations that could be left out.
  double seconds = 0;
};

// The flags that outputs themselves show. REQUIRES: two answers without a failure, the first with `again`.
std::vector<LintFlag> flags_of(const OracleAnswer& first, const OracleAnswer& other);

// Where there is a GPU, its judge answers (verify/gpu/task_lint.h), at any size; else the processor, in the sandbox.
// Blocks. Thread rule: any thread. Throws Error (environment) when the worker is lost twice.
LintReport lint_task(Verifier& verifier, const Task& task, const std::map<std::string, int64_t>& sizes);

}  // namespace tritonrl
