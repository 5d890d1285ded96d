// SPDX-License-Identifier: Apache-2.0
// SharedDevice: a GPU with constant users, and measurements that need it for themselves.
//
// A user (the sampler, the trainer) holds the device and gives way between two of its steps, when nothing of it runs
// there. Once all users do, the measurements (timings of kernels) that wait have the device one after the other; then
// each user takes at least one step before the next of them: neither side can starve the other.
// What comes and goes (the runs of candidates) takes a Turn for each of its steps, and measurements go first.
// Thread rule: any threads; a Use belongs to one. A thread has one Use of a device at a time and waits for no other
// user while it has it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tritonrl {

class SharedDevice {
 public:
  // Of a constant user, as long as it lives. A null device costs nothing.
  class Use {
   public:
    explicit Use(SharedDevice* device);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // Blocks while measurements that waited go through. REQUIRES: nothing of this user runs on the device.
    void give_way();
    // How long this user waited for measurements, and for the other users to give way to them, in seconds.
    double seconds_given() const { return seconds_given_; }

   private:
    SharedDevice* device_;
    double seconds_given_ = 0;
  };

  // Of one step: blocks while a measurement waits or is under way. A null device costs nothing.
  class Turn {
   public:
    explicit Turn(SharedDevice* device);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

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

 private:
  void begin_round_if_quiet();
  void leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t users_ = 0;
  int64_t resting_ = 0;    // Users that gave way and have not had their turn again.
  int64_t waiting_ = 0;    // Measurements.
  int64_t granted_ = 0;    // Measurements that may still begin in this round.
  bool measured_ = false;  // One is under way.
  bool in_round_ = false;  // All users rest until granted_ is 0 and none is under way.
  int64_t rounds_ = 0;     // Ended.
};

}  // namespace tritonrl
