// SPDX-License-Identifier: Apache-2.0
#include "ext/curriculum/curriculum.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl::curriculum {
namespace {

Json dealt(const std::vector<EpochShuffle>& shuffles) {
  Json out = Json::array();
  for (const EpochShuffle& shuffle : shuffles) out.push_back(shuffle.dealt());
  return out;
}

std::vector<EpochShuffle> dealt_to(std::vector<EpochShuffle> shuffles, const Json& saved) {
  for (size_t i = 0; i < shuffles.size(); ++i) shuffles[i].go_to(saved.at(i).get<int64_t>());
  return shuffles;
}

double total(const std::vector<EpochShuffle>& shuffles) {
  int64_t sum = 0;
  for (const EpochShuffle& shuffle : shuffles) sum += shuffle.dealt();
  return static_cast<double>(sum);
}

// Adds `share` to what is owed to level 2 and says whether the next task is of that level.
size_t next_level(double share, double* owed) {
  *owed += share;
  if (*owed < 1 - 1e-9) return 0;
  *owed -= 1;
  return 1;
}

}  // namespace

// --- Adaptive.

void Adaptive::Config::validate() const {
  if (!(0 <= least_level2_share && least_level2_share <= most_level2_share && most_level2_share <= 1)) {
    throw usage_error("least_level2_share and most_level2_share must be 0 to 1, and the first not above the second");
  }
  if (!(target_accuracy > 0 && target_accuracy <= 1)) throw usage_error("target_accuracy must be above 0, at most 1");
  if (window < 1) throw usage_error("window must be at least 1");
}

double adaptive_share(double accuracy, const Adaptive::Config& config) {
  double progress = std::clamp(accuracy / config.target_accuracy, 0.0, 1.0);
  return config.least_level2_share + (config.most_level2_share - config.least_level2_share) * progress;
}

Adaptive::Adaptive(std::vector<Task> tasks, const Config& config)
    : tasks_(std::move(tasks)),
      config_(config),
      shuffles_(level_shuffles(tasks_, config.seed)),
      level1_(config.window) {}

std::vector<const Task*> Adaptive::next(int64_t n) {
  double share = adaptive_share(level1_.rate(), config_);
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(&tasks_[shuffles_[next_level(share, &owed_)].deal()]);
  return out;
}

void Adaptive::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    if (level_index(result.level) == 0) level1_.add(result.samples, result.correct);
  }
}

Json Adaptive::state() const {
  return {{"identity", sampler_identity("adaptive", tasks_, {{"seed", config_.seed}, {"window", config_.window}})},
          {"dealt", dealt(shuffles_)},
          {"level1", level1_.state()},
          {"owed", owed_}};
}

void Adaptive::restore(const Json& state) {
  restore_checked(state, sampler_identity("adaptive", tasks_, {{"seed", config_.seed}, {"window", config_.window}}),
                  [&] {
                    auto shuffles = dealt_to(shuffles_, state.at("dealt"));
                    SuccessWindow window(config_.window);
                    window.restore(state.at("level1"));
                    owed_ = state.at("owed").get<double>();
                    shuffles_ = std::move(shuffles);
                    level1_ = std::move(window);
                  });
}

std::map<std::string, double> Adaptive::metrics() const {
  std::map<std::string, double> out = {{"sampler/level2_share", adaptive_share(level1_.rate(), config_)},
                                       {"sampler/tasks_drawn", total(shuffles_)}};
  if (total(shuffles_) > 0)
    out["sampler/level2_drawn_share"] = static_cast<double>(shuffles_[1].dealt()) / total(shuffles_);
  if (level1_.samples() > 0) out["sampler/level1_accuracy"] = level1_.rate();
  return out;
}

// --- Gate.

void Gate::Config::validate() const {
  if (level2_share < 0 || level2_share > 1) throw usage_error("level2_share must be 0 to 1");
  if (groups < 1 || rest < 1) throw usage_error("groups and rest must be at least 1");
}

Gate::Gate(std::vector<Task> tasks, const Config& config)
    : tasks_(std::move(tasks)),
      config_(config),
      shuffles_(level_shuffles(tasks_, config.seed)),
      histories_(tasks_.size()) {
  for (size_t i = 0; i < tasks_.size(); ++i) index_[tasks_[i].id] = i;
}

bool Gate::rests(size_t task) const {
  return shuffles_[level_index(tasks_[task].level)].epoch() < histories_[task].rests_until;
}

const Task* Gate::draw(EpochShuffle& shuffle) {
  for (int64_t tries = 0; tries < shuffle.size(); ++tries) {
    int64_t epoch = shuffle.epoch();  // Of the card that comes, which may be the last one.
    size_t task = shuffle.deal();
    if (epoch >= histories_[task].rests_until) return &tasks_[task];
    ++passed_over_;
  }
  return &tasks_[shuffle.deal()];  // All of them rest.
}

std::vector<const Task*> Gate::next(int64_t n) {
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(draw(shuffles_[next_level(config_.level2_share, &owed_)]));
  return out;
}

void Gate::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    auto it = index_.find(result.task_id);
    if (it == index_.end() || result.samples == 0) continue;
    History& history = histories_[it->second];
    history.groups.push_back(result.correct == 0 ? -1 : result.correct == result.samples ? 1 : 0);
    if (static_cast<int64_t>(history.groups.size()) > config_.groups) history.groups.pop_front();
    if (static_cast<int64_t>(history.groups.size()) < config_.groups || history.groups[0] == 0) continue;
    if (std::set<int>(history.groups.begin(), history.groups.end()).size() > 1) continue;
    history.rests_until = shuffles_[level_index(tasks_[it->second].level)].epoch() + config_.rest + 1;
    history.groups.clear();
  }
}

Json Gate::state() const {
  Json histories = Json::object();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const History& history = histories_[i];
    if (history.groups.empty() && history.rests_until < 0) continue;
    histories[tasks_[i].id] = {history.groups, history.rests_until};
  }
  return {{"identity", sampler_identity("gate", tasks_, {{"seed", config_.seed}})},
          {"dealt", dealt(shuffles_)},
          {"owed", owed_},
          {"passed_over", passed_over_},
          {"histories", histories}};
}

void Gate::restore(const Json& state) {
  restore_checked(state, sampler_identity("gate", tasks_, {{"seed", config_.seed}}), [&] {
    auto shuffles = dealt_to(shuffles_, state.at("dealt"));
    std::vector<History> histories(tasks_.size());
    for (const auto& [id, saved] : state.at("histories").items()) {
      auto it = index_.find(id);
      if (it == index_.end()) throw usage_error(cat("a sampler's state names task ", id, ", which there is not"));
      histories[it->second] = {saved.at(0).get<std::deque<int>>(), saved.at(1).get<int64_t>()};
    }
    auto passed_over = state.at("passed_over").get<int64_t>();
    owed_ = state.at("owed").get<double>();
    passed_over_ = passed_over;
    shuffles_ = std::move(shuffles);
    histories_ = std::move(histories);
  });
}

std::map<std::string, double> Gate::metrics() const {
  double resting = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) resting += rests(i);
  return {{"sampler/level2_share", config_.level2_share},
          {"sampler/tasks_drawn", total(shuffles_) - static_cast<double>(passed_over_)},
          {"sampler/resting_share", resting / static_cast<double>(tasks_.size())}};
}

// --- Promote.

void Promote::Config::validate() const {
  if (!(at > 0 && at <= 1)) throw usage_error("at must be above 0 and at most 1");
  if (window < 1) throw usage_error("window must be at least 1");
}

Promote::Promote(std::vector<Task> tasks, const Config& config)
    : tasks_(std::move(tasks)), config_(config), window_(config.window) {
  if (tasks_.empty()) throw usage_error("there are no tasks to sample", "data.sampler.type");
  std::map<int64_t, std::vector<size_t>> members;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    members[tasks_[i].difficulty > 0 ? tasks_[i].difficulty : tasks_[i].level].push_back(i);
  }
  for (const auto& [difficulty, own] : members) {
    for (size_t i : own) stage_of_[tasks_[i].id] = shuffles_.size();
    shuffles_.push_back(shuffle_of(own, config.seed, cat("difficulty", difficulty)));
    difficulties_.push_back(difficulty);
  }
}

std::vector<const Task*> Promote::next(int64_t n) {
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(&tasks_[shuffles_[stage_].deal()]);
  return out;
}

void Promote::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    auto it = stage_of_.find(result.task_id);
    if (it != stage_of_.end() && it->second == stage_) window_.add(result.samples, result.correct);
  }
  if (!window_.full() || window_.rate() < config_.at || stage_ + 1 == difficulties_.size()) return;
  ++stage_;
  window_.clear();
}

Json Promote::state() const {
  return {{"identity", sampler_identity("promote", tasks_, {{"seed", config_.seed}, {"window", config_.window}})},
          {"dealt", dealt(shuffles_)},
          {"stage", stage_},
          {"window", window_.state()}};
}

void Promote::restore(const Json& state) {
  restore_checked(state, sampler_identity("promote", tasks_, {{"seed", config_.seed}, {"window", config_.window}}),
                  [&] {
                    auto shuffles = dealt_to(shuffles_, state.at("dealt"));
                    SuccessWindow window(config_.window);
                    window.restore(state.at("window"));
                    auto stage = state.at("stage").get<size_t>();
                    if (stage >= shuffles.size())
                      throw usage_error("a sampler's state has more stages than there are difficulties");
                    stage_ = stage;
                    shuffles_ = std::move(shuffles);
                    window_ = std::move(window);
                  });
}

std::map<std::string, double> Promote::metrics() const {
  std::map<std::string, double> out = {{"sampler/difficulty", static_cast<double>(difficulty())},
                                       {"sampler/tasks_drawn", total(shuffles_)}};
  if (window_.samples() > 0) out["sampler/accuracy"] = window_.rate();
  return out;
}

}  // namespace tritonrl::curriculum
