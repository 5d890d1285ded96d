// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl {

namespace {

// Uniform in [0, 1), by graph and seed.
double place_of(const std::string& hash, int64_t seed) {
  return Rng(static_cast<uint64_t>(seed)).at("split").at(hash).uniform();
}

std::vector<Task> first_of_level(const std::vector<Task>& tasks, int level, int64_t count, const char* split) {
  std::vector<Task> out;
  for (const Task& task : tasks) {
    if (task.level == level && static_cast<int64_t>(out.size()) < count) out.push_back(task);
  }
  if (static_cast<int64_t>(out.size()) < count) {
    throw usage_error(cat("split '", split, "' wants ", count, " tasks of level ", level, ", there are ", out.size()),
                      "data.split", "make more tasks, lower the count, or give the split a larger share");
  }
  return out;
}

std::vector<Task> sized(const std::vector<Task>& tasks, int64_t level1, int64_t level2, const char* split) {
  auto out = first_of_level(tasks, 1, level1, split);
  auto more = first_of_level(tasks, 2, level2, split);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

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

Splits make_splits(const std::vector<Task>& tasks, const SplitConfig& config) {
  config.validate();
  struct Placed {
    double place;
    std::string hash;
    const Task* task;
  };
  std::vector<Placed> placed;
  for (const Task& task : tasks) {
    std::string hash = hash_of(task);
    placed.push_back({place_of(hash, config.seed), hash, &task});
  }
  // Within a split: one task of every graph before the second of any.
  std::map<std::string, int64_t> copies;
  std::vector<std::pair<int64_t, Placed>> ordered;
  for (const Placed& p : placed) ordered.push_back({copies[p.hash]++, p});
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.place) < std::pair(b.first, b.second.place);
  });
  std::vector<Task> train, rl, heldout;
  for (const auto& [copy, p] : ordered) {
    if (p.place < config.heldout_share) {
      if (copy == 0) heldout.push_back(*p.task);
    } else {
      (p.place < config.heldout_share + config.rl_share ? rl : train).push_back(*p.task);
    }
  }
  Splits splits;
  splits.train = sized(train, config.train_level1, config.train_level2, "train");
  splits.rl = sized(rl, config.rl_level1, config.rl_level2, "rl");
  std::set<std::string> taught;
  for (const Task& task : splits.train) taught.merge(operators_of_source(task.source));
  std::vector<Task> teachable;
  for (Task& task : heldout) {
    auto used = operators_of_source(task.source);
    bool known = std::includes(taught.begin(), taught.end(), used.begin(), used.end());
    if (known)
      teachable.push_back(std::move(task));
    else
      splits.unteachable.push_back(task.id);
  }
  splits.heldout = sized(teachable, config.heldout_level1, config.heldout_level2, "heldout");
  return splits;
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
