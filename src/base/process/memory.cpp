// SPDX-License-Identifier: Apache-2.0
#include "base/process/memory.h"

#include <unistd.h>

#include <fstream>

namespace tritonrl {

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return in ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace tritonrl
