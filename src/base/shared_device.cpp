// SPDX-License-Identifier: Apache-2.0
#include "base/shared_device.h"

#include "base/check.h"
#include "base/log.h"

namespace tritonrl {

SharedDevice::Use::Use(SharedDevice* device) : device_(device) {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  CHECK(!device_->used_) << device_->name_ << " has a user";
  device_->changed_.wait(lock, [&] { return !device_->measured_; });
  device_->used_ = true;
}

SharedDevice::Use::~Use() {
  if (!device_) return;
  std::lock_guard lock(device_->mutex_);
  device_->used_ = false;
  device_->changed_.notify_all();
}

void SharedDevice::Use::give_way() {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  if (device_->waiting_ == 0) return;
  double start = now_s();
  device_->granted_ = true;
  device_->changed_.notify_all();
  device_->changed_.wait(lock, [&] { return !device_->granted_ && !device_->measured_; });
  device_->seconds_given_ += now_s() - start;
}

SharedDevice::Quiet::Quiet(SharedDevice* device) : device_(device) {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  ++device_->waiting_;
  device_->changed_.wait(lock, [&] { return !device_->measured_ && (!device_->used_ || device_->granted_); });
  --device_->waiting_;
  device_->granted_ = false;
  device_->measured_ = true;
}

SharedDevice::Quiet::~Quiet() {
  if (!device_) return;
  std::lock_guard lock(device_->mutex_);
  device_->measured_ = false;
  device_->changed_.notify_all();
}

double SharedDevice::seconds_given() const {
  std::lock_guard lock(mutex_);
  return seconds_given_;
}

}  // namespace tritonrl
