// SPDX-License-Identifier: Apache-2.0
// OnceCache: a bounded cache whose values are made once, however many ask at the same time.
//
//   OnceCache<std::string, std::shared_ptr<const Answer>> cache(1000, [](const auto& a) { return a->lost ? -1 : 1; });
//   auto answer = cache.get(key, [&] { return work_it_out(); });   // One caller works, the others of this key wait.
//
// What make() throws goes to the one who made it and to those who waited; whoever asks next tries again. So it does
// for values that are not worth keeping. Thread rule: any thread; make() runs outside of the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace tritonrl {

template <class K, class V>
class OnceCache {
 public:
  // cost(value): what keeping it takes, negative = it is not kept. The oldest go when all of them cost more than `most`
  // (the newest stays whatever it costs).
  OnceCache(int64_t most, std::function<int64_t(const V&)> cost) : most_(most), cost_(std::move(cost)) {}

  // `made`: whether this call made the value.
  template <class Make>
  V get(const K& key, Make&& make, bool* made = nullptr) {
    std::promise<V> promise;
    std::shared_future<V> known;
    {
      std::lock_guard lock(mutex_);
      auto [it, fresh] = values_.try_emplace(key);
      if (fresh) {
        it->second = promise.get_future().share();
      } else {
        known = it->second;
      }
    }
    if (made) *made = !known.valid();
    if (known.valid()) return known.get();
    try {
      V value = std::forward<Make>(make)();
      complete(key, cost_(value));
      promise.set_value(value);
      return value;
    } catch (...) {
      complete(key, -1);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  void complete(const K& key, int64_t cost) {
    std::lock_guard lock(mutex_);
    if (cost < 0) {
      values_.erase(key);
      return;
    }
    kept_.emplace_back(key, cost);
    for (total_ += cost; total_ > most_ && kept_.size() > 1; kept_.pop_front()) {
      total_ -= kept_.front().second;
      values_.erase(kept_.front().first);
    }
  }

  const int64_t most_;
  const std::function<int64_t(const V&)> cost_;
  std::mutex mutex_;
  std::map<K, std::shared_future<V>> values_;  // Kept, and under way.
  std::list<std::pair<K, int64_t>> kept_;      // Oldest first, with their costs.
  int64_t total_ = 0;
};

}  // namespace tritonrl
