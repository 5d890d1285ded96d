// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_sampler.h"

#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

size_t level_index(int level) { return level >= 2 ? 1 : 0; }

Json sampler_identity(const std::string& type, const std::vector<Task>& tasks, const Json& settings) {
  std::string ids;
  for (const Task& task : tasks) ids += task.id + "\n";
  return {{"type", type}, {"tasks", content_hash(ids)}, {"settings", settings}};
}

void restore_checked(const Json& state, const Json& identity, const std::function<void()>& read) {
  auto refuse = [](const std::string& what) {
    throw usage_error(cat("cannot continue with this sampler state: ", what), "checkpoint",
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

FixedMix::FixedMix(std::vector<Task> tasks, const Config& config) : tasks_(std::move(tasks)), config_(config) {
  config_.validate();
  std::vector<size_t> members[2];
  for (size_t i = 0; i < tasks_.size(); ++i) members[level_index(tasks_[i].level)].push_back(i);
  for (size_t level = 0; level < 2; ++level) {
    double share = level == 1 ? config_.level2_share : 1 - config_.level2_share;
    if (share > 0 && members[level].empty()) {
      throw usage_error(cat("there are no tasks of level ", level + 1, " to sample"),
                        "data.sampler.fixed_mix.level2_share",
                        cat("set level2_share to ", level == 0 ? 1 : 0, " or add tasks of that level"));
    }
    levels_[level].order =
        EpochShuffle(std::move(members[level]), Rng(static_cast<uint64_t>(config_.seed)).at("epoch").at(level));
  }
}

std::vector<const Task*> FixedMix::next(int64_t n) {
  CHECK(n >= 0) << "next(" << n << ")";
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i, ++drawn_) {
    auto before = static_cast<int64_t>(std::floor(static_cast<double>(drawn_) * config_.level2_share));
    auto after = static_cast<int64_t>(std::floor(static_cast<double>(drawn_ + 1) * config_.level2_share));
    out.push_back(&tasks_[levels_[after > before ? 1 : 0].order.deal()]);
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

Json FixedMix::identity() const { return sampler_identity("fixed_mix", tasks_, {{"seed", config_.seed}}); }

Json FixedMix::state() const {
  Json levels = Json::array();
  for (const Level& level : levels_) {
    levels.push_back({{"drawn", level.order.dealt()}, {"samples", level.samples}, {"correct", level.correct}});
  }
  return {{"identity", identity()}, {"drawn", drawn_}, {"levels", levels}};
}

void FixedMix::restore(const Json& state) {
  restore_checked(state, identity(), [&] {
    auto drawn = state.at("drawn").get<int64_t>();
    Level levels[2] = {levels_[0], levels_[1]};
    for (size_t i = 0; i < 2; ++i) {
      const Json& saved = state.at("levels").at(i);
      levels[i].order.go_to(saved.at("drawn").get<int64_t>());
      levels[i].samples = saved.at("samples").get<int64_t>();
      levels[i].correct = saved.at("correct").get<int64_t>();
    }
    if (levels[0].order.dealt() + levels[1].order.dealt() != drawn) {
      throw usage_error("a sampler's state does not add up", "checkpoint");
    }
    drawn_ = drawn;
    levels_[0] = std::move(levels[0]);
    levels_[1] = std::move(levels[1]);
  });
}

std::map<std::string, double> FixedMix::metrics() const {
  std::map<std::string, double> out = {{"sampler/level2_share", config_.level2_share},
                                       {"sampler/tasks_drawn", static_cast<double>(drawn_)}};
  for (size_t i = 0; i < 2; ++i) {
    const Level& level = levels_[i];
    std::string name = cat("sampler/level", i + 1, "_");
    if (!level.order.empty()) {
      out[name + "epochs"] = static_cast<double>(level.order.dealt()) / static_cast<double>(level.order.size());
    }
    if (level.samples > 0)
      out[name + "accuracy"] = static_cast<double>(level.correct) / static_cast<double>(level.samples);
  }
  return out;
}

}  // namespace tritonrl
