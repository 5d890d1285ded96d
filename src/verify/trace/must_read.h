// SPDX-License-Identifier: Apache-2.0
// MustRead: how many bytes of its inputs and weights a task cannot be computed without.
//
// For the floor under a measured time: whoever computes it has to read them from memory. So nothing counts that a
// clever program may leave out. Where forward() holds an operation that might not need all of what it is given (a
// selection, a window, a mask, one that is not known here), nothing at all does; else every input and weight whose
// elements all go into some operation that computes and reaches an output.
#pragma once

#include <algorithm>

#include "verify/trace/trace.h"

namespace tritonrl {

// Of a reference's trace. Memory that several inputs or weights share counts once.
int64_t bytes_to_read(const CaseTrace& reference);

// Bytes that pass between memory and a cache of that size, whatever it holds before and after.
inline int64_t least_traffic(int64_t read, int64_t written, int64_t cache) {
  return std::max<int64_t>(read - cache, 0) + std::max<int64_t>(written - cache, 0);
}

}  // namespace tritonrl
