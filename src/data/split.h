// SPDX-License-Identifier: Apache-2.0
// Splits: train / rl / heldout, disjoint by operation graph.
//
// Where a task goes depends on its graph and the split seed alone, never on which other tasks there are: a larger task
// set adds to the splits and moves nothing between them. The counts then take the first so many of each level, in an
// order that is as fixed as the place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/task.h"

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
  std::vector<Task> train, rl, heldout;
  // Ids of tasks that would be held out but use an operator no task of `train` has, so nothing could have taught it.
  std::vector<std::string> unteachable;
};

// A task's graph hash, or its source's hash when it has none.
std::string hash_of(const Task& task);

// Held-out tasks are one per graph; the others may have a graph at several sizes. Throws Error (usage) when a split
// cannot get its count.
Splits make_splits(const std::vector<Task>& tasks, const SplitConfig& config);

// Throws Error (usage) that names two tasks, when two splits share a graph. Call it on whatever was loaded from files.
void check_disjoint(const Splits& splits);

}  // namespace tritonrl
