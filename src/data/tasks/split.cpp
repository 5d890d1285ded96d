// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/split.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl {

namespace {

// Uniform in [0, 1), by graph and seed.
double place_of(const std::string& hash, int64_t seed) {
  return Rng(static_cast<uint64_t>(seed)).at("split").at(hash).uniform();
}

constexpr int64_t kMostInVain = 2000;  // Draws in a row that filled no place.

const char* split_of(const Task& task, const SplitConfig& config) {
  double place = place_of(hash_of(task), config.seed);
  return place < config.heldout_share ? "heldout" : place < config.heldout_share + config.rl_share ? "rl" : "train";
}

class Splitter {
 public:
  Splitter(const DrawTasks& draw, const SplitConfig& config, const std::vector<Task>& taught_elsewhere)
      : draw_(draw), config_(config), taught_elsewhere_(taught_elsewhere) {}

  Splits run() {
    for (int level : {1, 2})
      fill(splits_.train, "train", level, wanted(level, config_.train_level1, config_.train_level2));
    for (int level : {1, 2}) fill(splits_.rl, "rl", level, wanted(level, config_.rl_level1, config_.rl_level2));
    if (config_.heldout_level1 + config_.heldout_level2 > 0) {
      note_taught(splits_.train);
      note_taught(taught_elsewhere_);
    }
    for (int level : {1, 2}) {
      fill(splits_.heldout, "heldout", level, wanted(level, config_.heldout_level1, config_.heldout_level2));
    }
    return std::move(splits_);
  }

 private:
  using Waiting = std::deque<Task>;

  void note_taught(const std::vector<Task>& tasks) {
    std::mutex mutex;
    parallel_for(tasks.size(), std::thread::hardware_concurrency(), [&](size_t i) {
      auto operators = operators_of_source(tasks[i].source);
      std::lock_guard lock(mutex);
      taught_.merge(std::move(operators));
    });
  }

  static int64_t wanted(int level, int64_t level1, int64_t level2) { return level == 1 ? level1 : level2; }

  bool of_use(const std::string& split, const Task& task) const {
    if (split == "train") return !task.solution.empty();
    if (split == "rl") return true;
    auto used = operators_of_source(task.source);
    return std::includes(taught_.begin(), taught_.end(), used.begin(), used.end());
  }

  // In the order in which tasks are drawn, whichever split was looked for when they were.
  void fill(std::vector<Task>& out, const std::string& split, int level, int64_t count) {
    int64_t have = 0, in_vain = 0;
    Waiting& waiting = waiting_[{split, level}];
    while (have < count) {
      while (waiting.empty()) {
        int64_t wanted = std::clamp<int64_t>(count - have, 1, kMostInVain - in_vain);
        auto tasks = in_vain < kMostInVain ? draw_(level, wanted) : std::vector<Task>();
        if (tasks.empty()) {
          throw usage_error(cat("split '", split, "' wants ", count, " tasks of level ", level, ", there are ", have),
                            "data.split",
                            "lower the count, draw from more operators, or give the split a larger share");
        }
        in_vain += static_cast<int64_t>(tasks.size());
        for (Task& task : tasks) {
          Waiting& found = waiting_[{split_of(task, config_), level}];
          found.push_back(std::move(task));
        }
      }
      Task task = std::move(waiting.front());
      waiting.pop_front();
      if (!of_use(split, task)) continue;
      out.push_back(std::move(task));
      ++have;
      in_vain = 0;
    }
  }

  const DrawTasks& draw_;
  const SplitConfig& config_;
  const std::vector<Task>& taught_elsewhere_;
  Splits splits_;
  std::set<std::string> taught_;
  std::map<std::pair<std::string, int>, Waiting> waiting_;  // Drawn for a split and a level, not looked at yet.
};

}  // namespace

void SplitConfig::validate() const {
  if (rl_share < 0 || heldout_share < 0 || rl_share + heldout_share >= 1) {
    throw usage_error("rl_share and heldout_share must be at least 0 and leave something for training");
  }
  for (int64_t count : {train_level1, train_level2, rl_level1, rl_level2, heldout_level1, heldout_level2}) {
    if (count < 0) throw usage_error("counts must be at least 0");
  }
}

std::string hash_of(const Task& task) {
  return task.graph_hash.empty() ? graph_hash_of_source(task.source) : task.graph_hash;
}

Splits make_splits(const DrawTasks& draw, const SplitConfig& config, const std::vector<Task>& taught_elsewhere) {
  config.validate();
  return Splitter(draw, config, taught_elsewhere).run();
}

bool is_for_training(const Task& task, const SplitConfig& config) {
  return std::string_view(split_of(task, config)) == "train" && !task.solution.empty();
}

void check_disjoint(const Splits& splits) {
  std::map<std::string, std::pair<const char*, std::string>> seen;
  auto look = [&](const char* split, const std::vector<Task>& tasks) {
    for (const Task& task : tasks) {
      auto [it, added] = seen.try_emplace(hash_of(task), split, task.id);
      if (!added && it->second.first != std::string(split)) {
        throw usage_error(cat("tasks '", it->second.second, "' (", it->second.first, ") and '", task.id, "' (", split,
                              ") have the same operation graph"),
                          "data.split", "make the splits again from one task set");
      }
    }
  };
  look("train", splits.train);
  look("rl", splits.rl);
  look("heldout", splits.heldout);
}

}  // namespace tritonrl
