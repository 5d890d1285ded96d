// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/own_time.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tritonrl {

void OwnTime::add(double seconds, const std::string& kernel) {
  std::lock_guard lock(mutex_);
  charged_ = true;
  if (kernel.empty()) {
    alone_s_ += seconds;
  } else {
    double& known = kernels_[kernel];
    known = std::max(known, seconds);
  }
}

double OwnTime::of_kernel(const std::string& kernel) const {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(kernel);
  return it == kernels_.end() ? 0 : it->second;
}

double OwnTime::seconds() const {
  std::lock_guard lock(mutex_);
  double sum = 0, longest = 0;
  for (const auto& [kernel, seconds] : kernels_) {
    sum += seconds;
    longest = std::max(longest, seconds);
  }
  return alone_s_ + std::max(longest, sum / kBeside);
}

bool OwnTime::charged() const {
  std::lock_guard lock(mutex_);
  return charged_;
}

double OwnTime::left() const {
  std::lock_guard lock(mutex_);
  return std::max(std::ceil(allowed_s_ - alone_s_), 1.0);
}

Finding OwnTime::finding() const {
  return with_secret(Rule::kLate, cat("it takes more than the ", fixed(allowed_s_, 1),
                                      " s of processor time that others' times allow"));
}

}  // namespace tritonrl
