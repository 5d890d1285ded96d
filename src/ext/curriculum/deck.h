// SPDX-License-Identifier: Apache-2.0
// What the samplers of this extension are made of: a deck that deals tasks, and a window over what became of them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/task.h"
#include "data/task_sampler.h"

namespace tritonrl::curriculum {

// Deals its members out in a new random order every epoch. The next card follows from seed, name and `dealt` alone.
class Deck {
 public:
  Deck(std::vector<size_t> members, int64_t seed, std::string name);
  size_t deal();  // REQUIRES: !empty().
  bool empty() const { return members_.empty(); }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  int64_t dealt() const { return dealt_; }
  int64_t epoch() const { return empty() ? 0 : dealt_ / size(); }  // Of the next card.
  void go_to(int64_t dealt);                                       // REQUIRES: dealt >= 0.

 private:
  std::vector<size_t> members_, order_;
  int64_t seed_;
  std::string name_;
  int64_t dealt_ = 0, order_of_ = -1;
};

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

// Decks of level 1 and of level 2. Throws Error (usage) when one of them is empty.
std::vector<Deck> level_decks(const std::vector<Task>& tasks, int64_t seed);
// What a state must have been made with to be restored.
Json identity(const std::string& type, const std::vector<Task>& tasks, const SamplerConfig& config);
// Calls read() and turns what Json throws into Error (usage); so it does with a state of another identity.
void restore_checked(const Json& state, const Json& identity, const std::function<void()>& read);

}  // namespace tritonrl::curriculum
