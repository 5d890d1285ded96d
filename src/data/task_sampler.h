// SPDX-License-Identifier: Apache-2.0
// TaskSampler: which tasks the next step works on. The seam for curricula.
//
// The loop asks next(), works, and tells observe() how it went. state() goes into checkpoints; a restored sampler goes
// on with exactly the tasks that would have come. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/json.h"
#include "base/rng.h"
#include "data/task.h"

namespace tritonrl {

// What became of one task's rollouts. Harness faults are not among them.
struct TaskResult {
  std::string task_id;
  int level = 1;
  int64_t samples = 0;
  int64_t correct = 0;
};

class TaskSampler {
 public:
  virtual ~TaskSampler() = default;
  // The next n tasks. The pointers live as long as the sampler's task list.
  virtual std::vector<const Task*> next(int64_t n) = 0;
  virtual void observe(const std::vector<TaskResult>& results) = 0;
  virtual Json state() const = 0;
  // Throws Error (usage) for a state of another task set or configuration.
  virtual void restore(const Json& state) = 0;
  virtual std::map<std::string, double> metrics() const = 0;  // E.g. "sampler/level2_share".
};

size_t level_index(int level);  // 0 for level 1, 1 for all above.

struct SamplerConfig {
  std::string type = "fixed_mix";
  double level2_share = 0.5;  // Share of drawn tasks that are of level 2.
  int64_t seed = 3;
  // Of samplers that look at results.
  int64_t window = 320;             // Rollouts that an accuracy is taken over: a few steps' worth.
  double least_level2_share = 0.1;  // At an accuracy of 0.
  double most_level2_share = 0.5;   // At target_accuracy and above.
  double target_accuracy = 0.4;     // On level 1.
  int64_t gate_groups = 2;          // Groups alike after which a task rests.
  int64_t gate_rest = 3;            // Epochs that it rests for.
  double promote_at = 0.5;          // Accuracy that unlocks the next difficulty.

  template <class V>
  void for_each_field(V& v) {
    v("type", type,
      "how tasks are chosen: fixed_mix (a constant share of level 2) or an extension's, see app/assemble.cpp");
    v("level2_share", level2_share, "share of level-2 tasks, 0 to 1");
    v("seed", seed, "order of the tasks");
    v("window", window, "rollouts that a sampler takes an accuracy over");
    v("least_level2_share", least_level2_share, "adaptive: share of level 2 while nothing of level 1 is solved");
    v("most_level2_share", most_level2_share, "adaptive: share of level 2 from target_accuracy on");
    v("target_accuracy", target_accuracy, "adaptive: accuracy on level 1 that gives the whole share");
    v("gate_groups", gate_groups, "gate: groups in a row, all solved or none, after which a task rests");
    v("gate_rest", gate_rest, "gate: epochs that such a task is left out");
    v("promote_at", promote_at, "promote: accuracy that unlocks the next difficulty");
  }
  void validate() const;
};

// Deals the tasks of each level out in a new random order every epoch; level 2 gets its share exactly (after n draws,
// floor(n x share) of them), not by chance.
class FixedMix : public TaskSampler {
 public:
  // Throws Error (usage) when a level with a share has no tasks. Levels above 2 count as 2.
  FixedMix(std::vector<Task> tasks, const SamplerConfig& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  struct Level {
    std::vector<size_t> members;  // Positions in tasks_.
    std::vector<size_t> order;    // Of the current epoch.
    int64_t drawn = 0;            // Over all epochs.
    int64_t samples = 0, correct = 0;
  };
  const Task* draw(size_t level);

  std::vector<Task> tasks_;
  SamplerConfig config_;
  std::string fingerprint_;  // Of the task ids.
  Level levels_[2];
  int64_t drawn_ = 0;
};

}  // namespace tritonrl
