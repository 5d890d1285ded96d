// SPDX-License-Identifier: Apache-2.0
#include "base/once_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tritonrl::once_cache_test {
namespace {

using Cache = OnceCache<int, int>;

int64_t one(const int&) { return 1; }

TEST(OnceCache, ManyAskAndOneWorks) {
  Cache cache(100, one);
  std::atomic<int> worked = 0, makers = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int key = 0; key < 20; ++key) {
        bool made = false;
        int value = cache.get(
            key,
            [&] {
              ++worked;
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
              return 10 * key;
            },
            &made);
        EXPECT_EQ(value, 10 * key);
        makers += made;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(worked, 20);
  EXPECT_EQ(makers, 20);
}

TEST(OnceCache, AfterAThrowTheNextTriesAgain) {
  Cache cache(100, one);
  std::atomic<bool> begun = false, go = false;
  std::atomic<int> failed = 0;
  auto fail = [&]() -> int {
    begun = true;
    while (!go) std::this_thread::yield();
    throw std::runtime_error("no");
  };
  auto ask = [&] {
    try {
      cache.get(1, fail);
    } catch (const std::runtime_error&) {
      ++failed;
    }
  };
  std::thread maker(ask);
  while (!begun) std::this_thread::yield();
  std::thread waiter(ask);  // Waits for the first, or is so late that it tries (and fails) itself.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  go = true;
  maker.join();
  waiter.join();
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(cache.get(1, [] { return 7; }), 7);
  EXPECT_EQ(cache.get(1, [] { return 8; }), 7);
}

TEST(OnceCache, KeepsWhatIsWorthItAndForgetsTheOldest) {
  Cache cache(10, [](const int& value) { return int64_t{value}; });
  auto ask = [&](int key, int value) {
    bool made = false;
    cache.get(
        key, [&] { return value; }, &made);
    return made;
  };
  EXPECT_TRUE(ask(1, -1));
  EXPECT_TRUE(ask(1, 4)) << "not worth keeping";
  EXPECT_TRUE(ask(2, 4));
  EXPECT_FALSE(ask(1, 4));
  EXPECT_TRUE(ask(3, 4)) << "one too much";
  EXPECT_FALSE(ask(2, 4));
  EXPECT_TRUE(ask(4, 40)) << "stays alone";
  EXPECT_FALSE(ask(4, 40));
  EXPECT_TRUE(ask(2, 4));
}

}  // namespace
}  // namespace tritonrl::once_cache_test
