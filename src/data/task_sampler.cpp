// SPDX-License-Identifier: Apache-2.0
#include "data/task_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

size_t level_index(int level) { return level >= 2 ? 1 : 0; }

void SamplerConfig::validate() const {
  if (level2_share < 0 || level2_share > 1) throw usage_error("level2_share must be 0 to 1");
  if (!(0 <= least_level2_share && least_level2_share <= most_level2_share && most_level2_share <= 1)) {
    throw usage_error("least_level2_share and most_level2_share must be 0 to 1, and the first not above the second");
  }
  if (!(target_accuracy > 0 && target_accuracy <= 1) || !(promote_at > 0 && promote_at <= 1)) {
    throw usage_error("target_accuracy and promote_at must be above 0 and at most 1");
  }
  if (window < 1 || gate_groups < 1 || gate_rest < 1) {
    throw usage_error("window, gate_groups and gate_rest must be at least 1");
  }
}

FixedMix::FixedMix(std::vector<Task> tasks, const SamplerConfig& config) : tasks_(std::move(tasks)), config_(config) {
  config_.validate();
  std::string ids;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    levels_[level_index(tasks_[i].level)].members.push_back(i);
    ids += tasks_[i].id + "\n";
  }
  fingerprint_ = content_hash(ids);
  for (size_t level = 0; level < 2; ++level) {
    double share = level == 1 ? config_.level2_share : 1 - config_.level2_share;
    if (share > 0 && levels_[level].members.empty()) {
      throw usage_error(cat("there are no tasks of level ", level + 1, " to sample"), "sampler.level2_share",
                        cat("set level2_share to ", level == 0 ? 1 : 0, " or add tasks of that level"));
    }
  }
}

const Task* FixedMix::draw(size_t index) {
  Level& level = levels_[index];
  auto size = static_cast<int64_t>(level.members.size());
  int64_t epoch = level.drawn / size, position = level.drawn % size;
  if (position == 0 || level.order.empty()) {
    level.order = level.members;
    Rng rng = Rng(static_cast<uint64_t>(config_.seed)).at("epoch").at(index).at(static_cast<uint64_t>(epoch));
    rng.shuffle(level.order);
  }
  ++level.drawn;
  return &tasks_[level.order[static_cast<size_t>(position)]];
}

std::vector<const Task*> FixedMix::next(int64_t n) {
  CHECK(n >= 0) << "next(" << n << ")";
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i, ++drawn_) {
    auto before = static_cast<int64_t>(std::floor(static_cast<double>(drawn_) * config_.level2_share));
    auto after = static_cast<int64_t>(std::floor(static_cast<double>(drawn_ + 1) * config_.level2_share));
    out.push_back(draw(after > before ? 1 : 0));
  }
  return out;
}

void FixedMix::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    Level& level = levels_[level_index(result.level)];
    level.samples += result.samples;
    level.correct += result.correct;
  }
}

Json FixedMix::state() const {
  Json levels = Json::array();
  for (const Level& level : levels_) {
    levels.push_back({{"drawn", level.drawn}, {"samples", level.samples}, {"correct", level.correct}});
  }
  return {
      {"type", "fixed_mix"}, {"tasks", fingerprint_}, {"seed", config_.seed}, {"drawn", drawn_}, {"levels", levels}};
}

void FixedMix::restore(const Json& state) {
  auto refuse = [](const std::string& what) {
    throw usage_error(cat("cannot go on with this sampler state: ", what), "checkpoint",
                      "resume with the tasks and the sampler it was made with");
  };
  try {
    if (state.at("type").get<std::string>() != "fixed_mix") refuse("it is not one of fixed_mix");
    if (state.at("tasks").get<std::string>() != fingerprint_) refuse("it belongs to another task set");
    if (state.at("seed").get<int64_t>() != config_.seed) refuse("it has another seed");
    int64_t drawn = state.at("drawn").get<int64_t>();
    Level levels[2] = {levels_[0], levels_[1]};
    for (size_t i = 0; i < 2; ++i) {
      const Json& saved = state.at("levels").at(i);
      levels[i].drawn = saved.at("drawn").get<int64_t>();
      levels[i].samples = saved.at("samples").get<int64_t>();
      levels[i].correct = saved.at("correct").get<int64_t>();
      levels[i].order.clear();
    }
    bool adds_up = levels[0].drawn >= 0 && levels[1].drawn >= 0 && levels[0].drawn + levels[1].drawn == drawn;
    if (!adds_up) refuse("its counts do not add up");
    drawn_ = drawn;
    levels_[0] = std::move(levels[0]);
    levels_[1] = std::move(levels[1]);
  } catch (const Json::exception&) {
    refuse("a field is missing or has the wrong type");
  }
}

std::map<std::string, double> FixedMix::metrics() const {
  std::map<std::string, double> out = {{"sampler/level2_share", config_.level2_share},
                                       {"sampler/tasks_drawn", static_cast<double>(drawn_)}};
  for (size_t i = 0; i < 2; ++i) {
    const Level& level = levels_[i];
    std::string name = cat("sampler/level", i + 1, "_");
    if (!level.members.empty()) {
      out[name + "epochs"] = static_cast<double>(level.drawn) / static_cast<double>(level.members.size());
    }
    if (level.samples > 0)
      out[name + "accuracy"] = static_cast<double>(level.correct) / static_cast<double>(level.samples);
  }
  return out;
}

}  // namespace tritonrl
