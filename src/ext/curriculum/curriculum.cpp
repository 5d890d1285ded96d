// SPDX-License-Identifier: Apache-2.0
#include "ext/curriculum/curriculum.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl::curriculum {
namespace {

Json dealt(const std::vector<Deck>& decks) {
  Json out = Json::array();
  for (const Deck& deck : decks) out.push_back(deck.dealt());
  return out;
}

std::vector<Deck> dealt_to(std::vector<Deck> decks, const Json& saved) {
  for (size_t i = 0; i < decks.size(); ++i) {
    auto position = saved.at(i).get<int64_t>();
    if (position < 0) throw usage_error("a position of a sampler's state is negative");
    decks[i].go_to(position);
  }
  return decks;
}

double total(const std::vector<Deck>& decks) {
  int64_t sum = 0;
  for (const Deck& deck : decks) sum += deck.dealt();
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

double adaptive_share(double accuracy, const SamplerConfig& config) {
  double progress = std::clamp(accuracy / config.target_accuracy, 0.0, 1.0);
  return config.least_level2_share + (config.most_level2_share - config.least_level2_share) * progress;
}

Adaptive::Adaptive(std::vector<Task> tasks, const SamplerConfig& config)
    : tasks_(std::move(tasks)), config_(config), decks_(level_decks(tasks_, config.seed)), level1_(config.window) {}

std::vector<const Task*> Adaptive::next(int64_t n) {
  double share = adaptive_share(level1_.rate(), config_);
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(&tasks_[decks_[next_level(share, &owed_)].deal()]);
  return out;
}

void Adaptive::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    if (level_index(result.level) == 0) level1_.add(result.samples, result.correct);
  }
}

Json Adaptive::state() const {
  return {{"identity", identity("adaptive", tasks_, config_)},
          {"dealt", dealt(decks_)},
          {"level1", level1_.state()},
          {"owed", owed_}};
}

void Adaptive::restore(const Json& state) {
  restore_checked(state, identity("adaptive", tasks_, config_), [&] {
    auto decks = dealt_to(decks_, state.at("dealt"));
    SuccessWindow window(config_.window);
    window.restore(state.at("level1"));
    owed_ = state.at("owed").get<double>();
    decks_ = std::move(decks);
    level1_ = std::move(window);
  });
}

std::map<std::string, double> Adaptive::metrics() const {
  std::map<std::string, double> out = {{"sampler/level2_share", adaptive_share(level1_.rate(), config_)},
                                       {"sampler/tasks_drawn", total(decks_)}};
  if (total(decks_) > 0) out["sampler/level2_drawn_share"] = static_cast<double>(decks_[1].dealt()) / total(decks_);
  if (level1_.samples() > 0) out["sampler/level1_accuracy"] = level1_.rate();
  return out;
}

// --- Gate.

Gate::Gate(std::vector<Task> tasks, const SamplerConfig& config)
    : tasks_(std::move(tasks)), config_(config), decks_(level_decks(tasks_, config.seed)), histories_(tasks_.size()) {
  for (size_t i = 0; i < tasks_.size(); ++i) index_[tasks_[i].id] = i;
}

bool Gate::rests(size_t task) const {
  return decks_[level_index(tasks_[task].level)].epoch() < histories_[task].rests_until;
}

const Task* Gate::draw(Deck& deck) {
  for (int64_t tries = 0; tries < deck.size(); ++tries) {
    int64_t epoch = deck.epoch();  // Of the card that comes, which may be the last one.
    size_t task = deck.deal();
    if (epoch >= histories_[task].rests_until) return &tasks_[task];
    ++passed_over_;
  }
  return &tasks_[deck.deal()];  // All of them rest.
}

std::vector<const Task*> Gate::next(int64_t n) {
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(draw(decks_[next_level(config_.level2_share, &owed_)]));
  return out;
}

void Gate::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    auto it = index_.find(result.task_id);
    if (it == index_.end() || result.samples == 0) continue;
    History& history = histories_[it->second];
    history.groups.push_back(result.correct == 0 ? -1 : result.correct == result.samples ? 1 : 0);
    if (static_cast<int64_t>(history.groups.size()) > config_.gate_groups) history.groups.pop_front();
    if (static_cast<int64_t>(history.groups.size()) < config_.gate_groups || history.groups[0] == 0) continue;
    if (std::set<int>(history.groups.begin(), history.groups.end()).size() > 1) continue;
    history.rests_until = decks_[level_index(tasks_[it->second].level)].epoch() + config_.gate_rest + 1;
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
  return {{"identity", identity("gate", tasks_, config_)},
          {"dealt", dealt(decks_)},
          {"owed", owed_},
          {"passed_over", passed_over_},
          {"histories", histories}};
}

void Gate::restore(const Json& state) {
  restore_checked(state, identity("gate", tasks_, config_), [&] {
    auto decks = dealt_to(decks_, state.at("dealt"));
    std::vector<History> histories(tasks_.size());
    for (const auto& [id, saved] : state.at("histories").items()) {
      auto it = index_.find(id);
      if (it == index_.end()) throw usage_error(cat("a sampler's state names task ", id, ", which there is not"));
      histories[it->second] = {saved.at(0).get<std::deque<int>>(), saved.at(1).get<int64_t>()};
    }
    auto passed_over = state.at("passed_over").get<int64_t>();
    owed_ = state.at("owed").get<double>();
    passed_over_ = passed_over;
    decks_ = std::move(decks);
    histories_ = std::move(histories);
  });
}

std::map<std::string, double> Gate::metrics() const {
  double resting = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) resting += rests(i);
  return {{"sampler/level2_share", config_.level2_share},
          {"sampler/tasks_drawn", total(decks_) - static_cast<double>(passed_over_)},
          {"sampler/resting_share", resting / static_cast<double>(tasks_.size())}};
}

// --- Promote.

Promote::Promote(std::vector<Task> tasks, const SamplerConfig& config)
    : tasks_(std::move(tasks)), config_(config), window_(config.window) {
  if (tasks_.empty()) throw usage_error("there are no tasks to sample", "data.sampler.type");
  std::map<int64_t, std::vector<size_t>> members;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    members[tasks_[i].difficulty > 0 ? tasks_[i].difficulty : tasks_[i].level].push_back(i);
  }
  for (const auto& [difficulty, own] : members) {
    for (size_t i : own) stage_of_[tasks_[i].id] = decks_.size();
    decks_.emplace_back(own, config.seed, cat("difficulty", difficulty));
    difficulties_.push_back(difficulty);
  }
}

std::vector<const Task*> Promote::next(int64_t n) {
  std::vector<const Task*> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(&tasks_[decks_[stage_].deal()]);
  return out;
}

void Promote::observe(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    auto it = stage_of_.find(result.task_id);
    if (it != stage_of_.end() && it->second == stage_) window_.add(result.samples, result.correct);
  }
  if (!window_.full() || window_.rate() < config_.promote_at || stage_ + 1 == difficulties_.size()) return;
  ++stage_;
  window_.clear();
}

Json Promote::state() const {
  return {{"identity", identity("promote", tasks_, config_)},
          {"dealt", dealt(decks_)},
          {"stage", stage_},
          {"window", window_.state()}};
}

void Promote::restore(const Json& state) {
  restore_checked(state, identity("promote", tasks_, config_), [&] {
    auto decks = dealt_to(decks_, state.at("dealt"));
    SuccessWindow window(config_.window);
    window.restore(state.at("window"));
    auto stage = state.at("stage").get<size_t>();
    if (stage >= decks.size()) throw usage_error("a sampler's state has more stages than there are difficulties");
    stage_ = stage;
    decks_ = std::move(decks);
    window_ = std::move(window);
  });
}

std::map<std::string, double> Promote::metrics() const {
  std::map<std::string, double> out = {{"sampler/difficulty", static_cast<double>(difficulty())},
                                       {"sampler/tasks_drawn", total(decks_)}};
  if (window_.samples() > 0) out["sampler/accuracy"] = window_.rate();
  return out;
}

}  // namespace tritonrl::curriculum
