// SPDX-License-Identifier: Apache-2.0
// What the samplers of this extension are made of: shuffles that deal tasks, and a window over what became of them.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json.h"
#include "data/epoch_shuffle.h"
#include "data/tasks/task.h"

namespace tritonrl::curriculum {

// Share of correct ones among the last `size` rollouts at least: whole groups, the oldest dropped when the rest is
// enough.
class SuccessWindow {
 public:
  explicit SuccessWindow(int64_t size) : size_(size) {}  // REQUIRES: size > 0.
  void add(int64_t samples, int64_t correct);
  double rate() const { return samples_ == 0 ? 0 : static_cast<double>(correct_) / static_cast<double>(samples_); }
  int64_t samples() const { return samples_; }
  bool full() const { return samples_ >= size_; }
  void clear();
  Json state() const;
  void restore(const Json& state);  // Throws Json::exception.

 private:
  int64_t size_;
  std::deque<std::pair<int64_t, int64_t>> groups_;  // (samples, correct), oldest first.
  int64_t samples_ = 0, correct_ = 0;
};

// Of level 1 and of level 2, with positions in `tasks`. Throws Error (usage) when one of them is empty.
std::vector<EpochShuffle> level_shuffles(const std::vector<Task>& tasks, int64_t seed);
// Of these members, under that name.
EpochShuffle shuffle_of(std::vector<size_t> members, int64_t seed, const std::string& name);

}  // namespace tritonrl::curriculum
