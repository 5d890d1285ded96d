// SPDX-License-Identifier: Apache-2.0
#include "base/shared_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace tritonrl {
namespace {

using namespace std::chrono_literals;

TEST(SharedDevice, StepsAndMeasurementsTakeTurns) {
  SharedDevice device("cuda:0");
  std::atomic<bool> stepping{false}, measuring{false};
  std::atomic<int> overlaps{0}, since_step{0}, most_in_a_row{0}, measured{0};
  constexpr int kThreads = 3, kEach = 20;
  std::vector<std::thread> threads;
  {
    SharedDevice::Use use(&device);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          SharedDevice::Quiet quiet(&device);
          measuring = true;
          overlaps += stepping;
          most_in_a_row = std::max<int>(most_in_a_row, ++since_step);
          std::this_thread::sleep_for(100us);
          overlaps += stepping;
          ++measured;
          measuring = false;
        }
      });
    }
    for (int step = 0; measured < kThreads * kEach - 5; ++step) {
      ASSERT_LT(step, 1000000) << measured << " measurements got through";
      stepping = true;
      overlaps += measuring;
      since_step = 0;
      std::this_thread::sleep_for(10us);
      overlaps += measuring;
      stepping = false;
      use.give_way();
    }
    EXPECT_EQ(most_in_a_row, 1);
  }
  for (std::thread& thread : threads) thread.join();  // The rest, with nobody to wait for.
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(measured, kThreads * kEach);
  EXPECT_GT(device.seconds_given(), 50 * 100e-6);
}

TEST(SharedDevice, AMeasurementWaitsForItsTurnOrForTheEnd) {
  SharedDevice device("cuda:0");
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

TEST(SharedDevice, WithoutAnotherUserNobodyWaits) {
  SharedDevice device("cuda:0");
  { SharedDevice::Quiet quiet(&device); }
  SharedDevice::Use use(&device);
  use.give_way();
  SharedDevice::Use none(nullptr);
  none.give_way();
  SharedDevice::Quiet nothing(nullptr);
  EXPECT_EQ(device.seconds_given(), 0);
}

}  // namespace
}  // namespace tritonrl
