// SPDX-License-Identifier: Apache-2.0
// Splits: train / rl / heldout, disjoint by operation graph.
//
// Where a task goes depends on its graph and the split seed alone, never on which other tasks there are: asking for
// more adds to a split and moves nothing between them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/tasks/task.h"

namespace tritonrl {

struct SplitConfig {
  int64_t seed = 11;
  double rl_share = 0.25;       // Of all graphs.
  double heldout_share = 0.25;  // Of all graphs; the rest is for training.
  int64_t train_level1 = 80, train_level2 = 80;
  int64_t rl_level1 = 20, rl_level2 = 20;
  int64_t heldout_level1 = 24, heldout_level2 = 24;
  template <class V>
  void for_each_field(V& v) {
    v("seed", seed, "decides which graph goes where");
    v("rl_share", rl_share, "share of the graphs kept for reinforcement learning");
    v("heldout_share", heldout_share, "share of the graphs kept for evaluation");
    v("train_level1", train_level1, "supervised tasks of level 1");
    v("train_level2", train_level2, "supervised tasks of level 2");
    v("rl_level1", rl_level1, "tasks of level 1 to sample rollouts for");
    v("rl_level2", rl_level2, "tasks of level 2 to sample rollouts for");
    v("heldout_level1", heldout_level1, "evaluation tasks of level 1");
    v("heldout_level2", heldout_level2, "evaluation tasks of level 2");
  }
  void validate() const;
};

struct Splits {
  std::vector<Task> train, rl, heldout;  // Level 1, then level 2.
  int64_t excluded_draws = 0;            // Of the stream they come from: graphs dropped for an exclusion.
};

// A task's graph hash, or its source's hash when it has none.
std::string hash_of(const Task& task);

// The next `count` tasks of level 1 or 2; fewer when there are no more.
using DrawTasks = std::function<std::vector<Task>(int level, int64_t count)>;

// Draws until every split has its count: for train tasks with solutions, for heldout tasks whose operators some task of
// train (or of `taught_elsewhere`) has, since nothing could have taught the others. Throws Error (usage) when a split
// cannot get its count.
Splits make_splits(const DrawTasks& draw, const SplitConfig& config, const std::vector<Task>& taught_elsewhere = {});

// Would make_splits() put the task into train? It has a solution then.
bool is_for_training(const Task& task, const SplitConfig& config);

// Throws Error (usage) that names two tasks, when two splits share a graph. Call it on whatever was loaded from files.
void check_disjoint(const Splits& splits);

}  // namespace tritonrl
