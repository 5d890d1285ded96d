// SPDX-License-Identifier: Apache-2.0
#include "base/process/shared_device.h"

#include "base/log.h"

namespace tritonrl {

// REQUIRES: the lock.
void SharedDevice::begin_round_if_quiet() {
  if (in_round_ || users_ == 0 || resting_ < users_ || waiting_ == 0) return;
  in_round_ = true;
  granted_ = waiting_;
}

SharedDevice::Use::Use(SharedDevice* device) : device_(device) {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  device_->changed_.wait(lock, [&] { return !device_->measured_ && !device_->in_round_; });
  ++device_->users_;
}

void SharedDevice::leave() {
  std::lock_guard lock(mutex_);
  --users_;
  begin_round_if_quiet();
  changed_.notify_all();
}

SharedDevice::Use::~Use() {
  if (device_) device_->leave();
}

SharedDevice::Turn::Turn(SharedDevice* device) : device_(device) {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  device_->changed_.wait(lock, [&] { return !device_->measured_ && !device_->in_round_ && device_->waiting_ == 0; });
  ++device_->users_;
}

SharedDevice::Turn::~Turn() {
  if (device_) device_->leave();
}

void SharedDevice::Use::give_way() {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  if (device_->waiting_ == 0) return;
  double start = now_s();
  int64_t rounds = device_->rounds_;
  ++device_->resting_;
  device_->begin_round_if_quiet();
  device_->changed_.notify_all();
  device_->changed_.wait(lock, [&] { return device_->rounds_ != rounds; });
  seconds_given_ += now_s() - start;
}

SharedDevice::Quiet::Quiet(SharedDevice* device) : device_(device) {
  if (!device_) return;
  std::unique_lock lock(device_->mutex_);
  ++device_->waiting_;
  device_->changed_.wait(lock, [&] { return !device_->measured_ && (device_->users_ == 0 || device_->granted_ > 0); });
  --device_->waiting_;
  if (device_->granted_ > 0) --device_->granted_;
  device_->measured_ = true;
}

SharedDevice::Quiet::~Quiet() {
  if (!device_) return;
  std::lock_guard lock(device_->mutex_);
  device_->measured_ = false;
  if (device_->in_round_ && device_->granted_ == 0) {
    device_->in_round_ = false;
    device_->resting_ = 0;
    ++device_->rounds_;
  }
  device_->changed_.notify_all();
}

}  // namespace tritonrl
