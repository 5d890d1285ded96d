// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/own_time.h"

#include <algorithm>

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

void OwnTime::set_deadline(double seconds) {
  double now = this->seconds();
  deadline_s_ = seconds;
  deadline_at_ = now + seconds;
}

double OwnTime::limit() const { return std::min(late_s_, deadline_at_); }

double OwnTime::left(bool of_kernel) const {
  if (!of_kernel) return std::max(limit() - seconds(), 0.0);
  std::lock_guard lock(mutex_);
  double sum = 0;
  for (const auto& [kernel, seconds] : kernels_) sum += seconds;
  double all = limit() - alone_s_;
  return std::max(std::min(all, kBeside * all - sum), 0.0);
}

Finding OwnTime::finding() const {
  if (late_s_ > deadline_at_) {
    return with_secret(Rule::kDeadline, cat("not finished after ", human_seconds(deadline_s_)));
  }
  return with_secret(Rule::kLate,
                     cat("it takes more than the ", fixed(late_s_, 1), " s of its own time that others' times allow"));
}

}  // namespace tritonrl
