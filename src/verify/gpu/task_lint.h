// SPDX-License-Identifier: Apache-2.0
// TaskLint: would wrong answers to a task pass?
//
// Judges made-up answers by the rules that candidates are judged by (compare_device.h). An answer that passes although
// it should not is a finding; a task with one is not worth training or evaluating on. Controls:
//
//   zeros, mean, negated, rotated   instead of the right outputs: all zeros, each output's mean, the sign turned, every
//                                   element moved by one
//   other_inputs                    the right outputs for inputs of another seed: the task ignores its inputs, or
//                                   drowns them in noise
//   drop OP                         the reference without one compute operation, whose (first) result is its first
//                                   argument of the same shape and dtype; operations without such an argument are not
//                                   tried
//   nondeterministic                the reference, run again, does not pass by its own first answer
//
// Also told, as remarks that reject nothing: `zeros_within_0.01` (zeros would pass atol = rtol = 0.01, which is what
// KernelBench compares with), `uniform along dimension N`, `not_finite`.
//
// Works on any device. Thread rule: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verify/gpu/compare_device.h"
#include "verify/gpu/tape.h"

namespace tritonrl {

struct LintReport {
  std::vector<std::string> findings, remarks;
  int64_t drops_tried = 0, drops_impossible = 0;
};

struct LintRequest {
  Tape* tape = nullptr;  // Of the reference, in its own dtypes.
  const std::vector<Expectation>* expected = nullptr;
  std::vector<std::string> names;                                 // Of the outputs.
  std::function<std::vector<at::Tensor>(bool other_inputs)> run;  // The tape's forward; its outputs.
  std::function<bool()> enough;                                   // Time is up: drops that are left are not tried.
};

// Throws ReplayFailure when the reference itself fails.
LintReport lint_reference(const LintRequest& request);

}  // namespace tritonrl
