// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace tritonrl {

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return in ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void HeapTrimmer::after_unit() {
  int64_t now = resident_bytes();
  if (first_ == 0) first_ = now;
  if (now > first_ + first_ / 10 * 3) ::malloc_trim(0);
}

}  // namespace tritonrl
