// SPDX-License-Identifier: Apache-2.0
// SharedDevice: a GPU with one constant user, and measurements that need it for themselves.
//
// The user (the sampler) holds the device and gives way between two of its steps, when nothing of it runs there. A
// measurement (the timing of a kernel) waits for that, has the device alone until its end, and then the user takes at
// least one step before the next measurement: neither waits for more than one of the other.
// Thread rule: any threads; at most one Use at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace tritonrl {

class SharedDevice {
 public:
  // As the verifier names it: "cuda:0".
  explicit SharedDevice(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // Of the constant user, as long as it lives. A null device costs nothing.
  class Use {
   public:
    explicit Use(SharedDevice* device);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // Blocks while a measurement that waited goes through. REQUIRES: the device is idle.
    void give_way();

   private:
    SharedDevice* device_;
  };

  // Of a measurement: blocks until the device is quiet, which it is as long as this lives. A null device costs nothing.
  class Quiet {
   public:
    explicit Quiet(SharedDevice* device);
    Quiet(Quiet&& other) noexcept : device_(std::exchange(other.device_, nullptr)) {}
    ~Quiet();

   private:
    SharedDevice* device_;
  };

  // How long the user waited for measurements, in seconds.
  double seconds_given() const;

 private:
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool used_ = false;      // There is a Use.
  bool measured_ = false;  // There is a Quiet that waits no more.
  bool granted_ = false;   // The user lets one measurement through.
  int64_t waiting_ = 0;    // Measurements.
  double seconds_given_ = 0;
};

}  // namespace tritonrl
