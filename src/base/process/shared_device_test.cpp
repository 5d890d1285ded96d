// SPDX-License-Identifier: Apache-2.0
#include "base/process/shared_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace tritonrl::shared_device_test {
namespace {

using namespace std::chrono_literals;

TEST(SharedDevice, StepsAndMeasurementsTakeTurns) {
  for (int users : {1, 3}) {
    SharedDevice device;
    constexpr int kThreads = 3, kEach = 20;
    std::atomic<int> stepping{0}, measuring{0}, overlaps{0}, measured{0}, steps{0}, starved{0}, gave{0};
    std::vector<std::thread> threads;
    for (int u = 0; u < users; ++u) {
      threads.emplace_back([&, u] {
        std::optional<SharedDevice::Use> use(std::in_place, &device);
        for (int step = 0; measured < kThreads * kEach - 5; ++step) {
          ++stepping;
          ++steps;
          overlaps += measuring;
          std::this_thread::sleep_for(std::chrono::microseconds(10 * (u + 1)));
          overlaps += measuring;
          --stepping;
          use->give_way();
          gave += use->seconds_given() > 0;
          if (u == 1 && step % 7 == 6) use.emplace(&device);  // Goes and comes again.
        }
      });
    }
    while (steps < users) std::this_thread::yield();
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          SharedDevice::Quiet quiet(&device);
          int before = steps;
          overlaps += measuring++ + stepping;
          std::this_thread::sleep_for(100us);
          overlaps += stepping;
          starved += steps != before;
          ++measured;
          --measuring;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();  // The last measurements have nobody to wait for.
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(starved, 0);
    EXPECT_GT(gave, 0);
    EXPECT_EQ(measured, kThreads * kEach);
  }
}

TEST(SharedDevice, AMeasurementWaitsForItsTurnOrForTheEnd) {
  SharedDevice device;
  for (bool gives_way : {true, false}) {
    std::optional<SharedDevice::Use> use(std::in_place, &device);
    auto measurement = std::async(std::launch::async, [&] { SharedDevice::Quiet quiet(&device); });
    EXPECT_EQ(measurement.wait_for(30ms), std::future_status::timeout);
    if (gives_way) {
      use->give_way();
    } else {
      use.reset();
    }
    EXPECT_EQ(measurement.wait_for(10s), std::future_status::ready);
  }
}

// Turns of some threads and measurements of others: never at once, and a measurement that waits is next.
TEST(SharedDevice, TurnsAndMeasurementsNeverMeet) {
  SharedDevice device;
  std::atomic<int> turning{0}, measuring{0}, overlaps{0}, together{0}, measured{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (measured < 30) {
        SharedDevice::Turn turn(&device);
        together += ++turning > 1;
        overlaps += measuring;
        std::this_thread::sleep_for(200us);
        overlaps += measuring;
        --turning;
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 15; ++i) {
        SharedDevice::Quiet quiet(&device);
        overlaps += measuring++ + turning;
        std::this_thread::sleep_for(100us);
        overlaps += turning;
        --measuring;
        ++measured;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_GT(together, 0);  // Turns do not wait for each other.
  EXPECT_EQ(measured, 30);
}

TEST(SharedDevice, ATurnWaitsWhileAMeasurementDoes) {
  SharedDevice device;
  std::optional<SharedDevice::Use> use(std::in_place, &device);
  auto measurement = std::async(std::launch::async, [&] {
    SharedDevice::Quiet quiet(&device);
    std::this_thread::sleep_for(20ms);
  });
  std::this_thread::sleep_for(20ms);
  auto turn = std::async(std::launch::async, [&] { SharedDevice::Turn turn(&device); });
  EXPECT_EQ(turn.wait_for(30ms), std::future_status::timeout);
  use.reset();
  EXPECT_EQ(turn.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(measurement.wait_for(10s), std::future_status::ready);
}

TEST(SharedDevice, WithoutAnotherUserNobodyWaits) {
  SharedDevice device;
  { SharedDevice::Quiet quiet(&device); }
  SharedDevice::Use use(&device);
  use.give_way();
  SharedDevice::Use none(nullptr);
  none.give_way();
  SharedDevice::Quiet nothing(nullptr);
  EXPECT_EQ(use.seconds_given(), 0);
}

}  // namespace
}  // namespace tritonrl::shared_device_test
