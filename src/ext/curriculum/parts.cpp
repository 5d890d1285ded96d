// SPDX-License-Identifier: Apache-2.0
#include "ext/curriculum/parts.h"

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/tasks/task_sampler.h"

namespace tritonrl::curriculum {

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

EpochShuffle shuffle_of(std::vector<size_t> members, int64_t seed, const std::string& name) {
  return {std::move(members), Rng(static_cast<uint64_t>(seed)).at("deck").at(name)};
}

std::vector<EpochShuffle> level_shuffles(const std::vector<Task>& tasks, int64_t seed) {
  std::vector<size_t> members[2];
  for (size_t i = 0; i < tasks.size(); ++i) members[level_index(tasks[i].level)].push_back(i);
  std::vector<EpochShuffle> out;
  for (size_t level = 0; level < 2; ++level) {
    if (members[level].empty()) {
      throw usage_error(cat("there are no tasks of level ", level + 1, " to sample"), "data.sampler.type",
                        "add tasks of that level, or take the sampler fixed_mix");
    }
    out.push_back(shuffle_of(members[level], seed, cat("level", level + 1)));
  }
  return out;
}

}  // namespace tritonrl::curriculum
