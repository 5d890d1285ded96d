// SPDX-License-Identifier: Apache-2.0
// Epoch shuffle: hands its members out in a new random order every epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace tritonrl {

// The next member follows from the stream and `dealt` alone, so a position is all that a checkpoint needs.
class EpochShuffle {
 public:
  EpochShuffle() = default;
  EpochShuffle(std::vector<size_t> members, const Rng& stream) : members_(std::move(members)), stream_(stream) {}
  size_t deal();  // REQUIRES: !empty().
  bool empty() const { return members_.empty(); }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  int64_t dealt() const { return dealt_; }
  int64_t epoch() const { return empty() ? 0 : dealt_ / size(); }  // Of the next member.
  // Throws Error (usage) for a negative position, as a file may hold.
  void go_to(int64_t dealt);

 private:
  std::vector<size_t> members_, order_;
  Rng stream_{0};
  int64_t dealt_ = 0, order_of_ = -1;
};

}  // namespace tritonrl
