// SPDX-License-Identifier: Apache-2.0
// WrittenElements: how much of what a task gives its launches write, told by a run without them: what is wrong then.
//
// It is asked of tasks that only move data, where library calls could do all of it. What the task fills with constants
// is nobody's work and does not count.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "verify/trace/trace.h"

namespace tritonrl {

struct WrittenElements {
  std::vector<double> constants;  // That the task fills with: zero, and every number among its operators' arguments.
  int64_t wrong = 0, all = 0;

  double share() const { return static_cast<double>(wrong) / static_cast<double>(all); }
};

// Null where the task computes, or where the launches are there.
std::unique_ptr<WrittenElements> count_written(const CaseTrace& reference, bool launches);

}  // namespace tritonrl
