// SPDX-License-Identifier: Apache-2.0
// parallel_for: calls a function for 0 .. count - 1 from a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tritonrl {

// Blocks. The first exception stops the handing out of more and comes out of this call.
template <class Fn>
void parallel_for(size_t count, int64_t threads, const Fn& fn) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr problem;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        fn(i);
      } catch (...) {  // Carried over to the caller's thread.
        std::lock_guard lock(mutex);
        if (!problem) problem = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> pool;
  auto wanted = std::min<size_t>(count, static_cast<size_t>(std::max<int64_t>(threads, 1)));
  for (size_t i = 1; i < wanted; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace tritonrl
