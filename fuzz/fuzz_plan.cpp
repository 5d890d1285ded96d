// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of recordings and the policy over what parses; what parses must survive being written again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "verify/plan_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string fault = tritonrl::rewrite_fault(std::string(reinterpret_cast<const char*>(data), size));
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
