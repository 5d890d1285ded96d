// SPDX-License-Identifier: Apache-2.0
// DeviceLint: what makes a task useless, found where its reference runs. The flags are those of verify/task_lint.h;
// controls are judged by the rules that candidates are judged by (compare_device.h):
//
//   control            all zeros, each output's mean, the sign turned or every element moved by one would pass
//   input_independent  the right outputs for other inputs would pass
//   seed_invariant     inputs of two seeds are the same
//   drop               the reference without one compute operation would pass: its (first) result is its first argument
//                      of the same shape and dtype; operations without such an argument cannot be left out
//   nondeterministic   the reference, run again, does not pass by its own first answer
//   zero, constant, uniform, absolute, noise_level, not_finite    of the right outputs themselves
//
// Works on any device. Thread rule: one thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "verify/judge/compare_device.h"
#include "verify/replay/tape.h"

namespace tritonrl {

struct DeviceLint {
  std::vector<std::pair<std::string, std::string>> flags;  // Flag, detail.
  int64_t drops_tried = 0, drops_impossible = 0;

  void add(const std::string& flag, const std::string& detail) { flags.emplace_back(flag, detail); }
};

struct DeviceLintRequest {
  Tape* tape = nullptr;  // Of the reference, in its own dtypes.
  const std::vector<Expectation>* expected = nullptr;
  std::vector<std::string> names;                                 // Of the outputs.
  std::function<std::vector<at::Tensor>(bool other_inputs)> run;  // The tape's forward; its outputs.
  std::function<bool()> enough;                                   // Time is up: drops that are left are not tried.
};

// Throws ReplayFailure when the reference itself fails.
DeviceLint lint_on_device(const DeviceLintRequest& request);

}  // namespace tritonrl
