// SPDX-License-Identifier: Apache-2.0
// CHECK: states what our own code guarantees. A failed CHECK is a bug of ours, never a candidate's or the user's.
//
// CHECK(rows > 0) << "batch of task " << id;   prints file, line, condition and message, then ends with exit code 70.
// Candidates' failures are Outcomes (verify/verdict.h), the user's and the world's are Errors (base/error.h).
#pragma once

#include <sstream>

namespace tritonrl {

constexpr int kExitOurBug = 70;

namespace internal {

// Collects the message; its destructor prints it and ends the process.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  template <class T>
  CheckFailure& operator<<(const T& value) {
    message_ << value;
    return *this;
  }

 private:
  std::ostringstream message_;
};

struct Voidify {
  void operator&(const CheckFailure&) const {}
};

}  // namespace internal
}  // namespace tritonrl

// torch defines a CHECK of its own in some headers; ours wins in our files.
#ifdef CHECK
#undef CHECK
#endif
#define CHECK(condition) \
  (condition) ? (void)0  \
              : ::tritonrl::internal::Voidify() & ::tritonrl::internal::CheckFailure(__FILE__, __LINE__, #condition)
