// SPDX-License-Identifier: Apache-2.0
// Variants: proposals of data/tasks/shape_variants.h, each proven by recording the reference with it.
//
// A proposal is good when the reference records, calls the same operations in the same order as at its own sizes, and
// returns tensors that are not empty. A tiny one must also be small: kTinyElements in all tensors of its tape together.
#pragma once

#include <string>

#include "data/tasks/shape_variants.h"
#include "verify/verifier.h"

namespace tritonrl {

constexpr int64_t kTinyElements = int64_t{1} << 22;

struct Variants {
  std::string source;  // The task's, or with its sizes named where that was needed.
  Sizes tiny, larger;  // Empty = none found.
  int64_t traces = 0;
  std::string failure;  // Why the task cannot be recorded at all; "" when it can.
};

// Blocks: records the reference once a proposal, tens of milliseconds each. Thread rule: any thread.
Variants find_variants(Verifier& verifier, const Task& task);

}  // namespace tritonrl
