// SPDX-License-Identifier: Apache-2.0
#include "ext/curriculum/deck.h"

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace tritonrl::curriculum {

Deck::Deck(std::vector<size_t> members, int64_t seed, std::string name)
    : members_(std::move(members)), seed_(seed), name_(std::move(name)) {}

size_t Deck::deal() {
  CHECK(!empty()) << "an empty deck";
  if (order_of_ != epoch()) {
    order_of_ = epoch();
    order_ = members_;
    Rng rng = Rng(static_cast<uint64_t>(seed_)).at("deck").at(name_).at(static_cast<uint64_t>(order_of_));
    rng.shuffle(order_);
  }
  return order_[static_cast<size_t>(dealt_++ % size())];
}

void Deck::go_to(int64_t dealt) {
  CHECK(dealt >= 0) << dealt;
  dealt_ = dealt;
}

void SuccessWindow::add(int64_t samples, int64_t correct) {
  CHECK(samples >= 0 && correct >= 0 && correct <= samples) << correct << " of " << samples;
  if (samples == 0) return;
  groups_.emplace_back(samples, correct);
  samples_ += samples;
  correct_ += correct;
  while (samples_ - groups_.front().first >= size_) {
    samples_ -= groups_.front().first;
    correct_ -= groups_.front().second;
    groups_.pop_front();
  }
}

void SuccessWindow::clear() {
  groups_.clear();
  samples_ = correct_ = 0;
}

Json SuccessWindow::state() const {
  Json out = Json::array();
  for (const auto& [samples, correct] : groups_) out.push_back({samples, correct});
  return out;
}

void SuccessWindow::restore(const Json& state) {
  clear();
  for (const Json& group : state) {
    auto samples = group.at(0).get<int64_t>(), correct = group.at(1).get<int64_t>();
    if (samples < 1 || correct < 0 || correct > samples)
      throw usage_error("a group of a sampler's state is impossible");
    add(samples, correct);
  }
}

std::vector<Deck> level_decks(const std::vector<Task>& tasks, int64_t seed) {
  std::vector<size_t> members[2];
  for (size_t i = 0; i < tasks.size(); ++i) members[level_index(tasks[i].level)].push_back(i);
  std::vector<Deck> decks;
  for (size_t level = 0; level < 2; ++level) {
    if (members[level].empty()) {
      throw usage_error(cat("there are no tasks of level ", level + 1, " to sample"), "data.sampler.type",
                        "add tasks of that level, or take the sampler fixed_mix");
    }
    decks.emplace_back(members[level], seed, cat("level", level + 1));
  }
  return decks;
}

Json identity(const std::string& type, const std::vector<Task>& tasks, const SamplerConfig& config) {
  std::string ids;
  for (const Task& task : tasks) ids += task.id + "\n";
  return {{"type", type}, {"tasks", content_hash(ids)}, {"seed", config.seed}, {"window", config.window}};
}

void restore_checked(const Json& state, const Json& identity, const std::function<void()>& read) {
  auto refuse = [](const std::string& what) {
    throw usage_error(cat("cannot go on with this sampler state: ", what), "checkpoint",
                      "resume with the tasks and the sampler it was made with");
  };
  if (!state.is_object() || !state.contains("identity") || state["identity"] != identity) {
    refuse("it was made with another sampler, configuration or task set");
  }
  try {
    read();
  } catch (const Json::exception&) {
    refuse("a field is missing or has the wrong type");
  }
}

}  // namespace tritonrl::curriculum
