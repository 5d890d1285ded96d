// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of traces and bundles, and the call rules over what parses; a trace that parses must survive
// being written again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "support/trace_writer.h"
#include "verify/trace/bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.compare(0, 4, "TRPB") == 0) {
    tritonrl::parse_bundle(std::make_shared<const std::string>(std::move(bytes)));
    return 0;
  }
  std::string fault = tritonrl::rewrite_fault(bytes);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
