// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: value = f(seed, stream, counter), so the same draw is the same whatever ran before it.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A stream is named by mixing in
// what it belongs to: Rng(seed).at(step).at(task).at(sample). Streams are values; copying one copies its position.
// Thread rule: one Rng per thread; at() is const and may be called from any.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tritonrl {

// One Philox4x32-10 block.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  explicit Rng(uint64_t seed = 0) : key_(seed) {}

  // An independent stream for `id`, started at its beginning; this stream does not move.
  Rng at(uint64_t id) const;
  Rng at(std::string_view name) const;

  uint64_t next_u64();
  double uniform();          // In [0, 1), 53 bits.
  int64_t below(int64_t n);  // Uniform in [0, n), without modulo bias. REQUIRES: n > 0.
  double normal();           // Standard normal, Box-Muller.

  template <class T>
  void shuffle(std::vector<T>& items) {  // Fisher-Yates.
    for (int64_t i = static_cast<int64_t>(items.size()) - 1; i > 0; --i) std::swap(items[i], items[below(i + 1)]);
  }
  template <class T>
  const T& pick(const std::vector<T>& items) {  // REQUIRES: items not empty.
    return items[below(static_cast<int64_t>(items.size()))];
  }

  // Position, for checkpoints: Rng::restore(rng.key(), rng.counter()) continues exactly where rng is.
  uint64_t key() const { return key_; }
  uint64_t counter() const { return counter_; }
  static Rng restore(uint64_t key, uint64_t counter);

 private:
  uint64_t key_ = 0;
  uint64_t counter_ = 0;
};

}  // namespace tritonrl
