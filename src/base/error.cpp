// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace tritonrl {

Error::Error(ErrorKind kind, std::string what, std::string where, std::string hint)
    : kind_(kind), message_(std::move(what)), where_(std::move(where)), hint_(std::move(hint)) {
  full_ = where_.empty() ? message_ : where_ + ": " + message_;
  if (!hint_.empty()) full_ += "\n  hint: " + hint_;
}

}  // namespace tritonrl
