// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tritonrl::internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  message_ << file << ":" << line << ": CHECK(" << condition << ") failed. ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "tritonrl: internal error: %s\n", message_.str().c_str());
  std::fflush(nullptr);
  std::_Exit(kExitOurBug);
}

}  // namespace tritonrl::internal
