// SPDX-License-Identifier: Apache-2.0
// TaskSampler: which tasks the next step works on. The seam for curricula.
//
// The loop asks next(), works, and tells observe() how it went. state() goes into checkpoints; a restored sampler
// continues with exactly the tasks that would have come. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/config_choice.h"
#include "base/files/json.h"
#include "data/epoch_shuffle.h"
#include "data/tasks/task.h"

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

// What a state must have been made with to be restored: the sampler, its tasks and its settings.
Json sampler_identity(const std::string& type, const std::vector<Task>& tasks, const Json& settings);
// Calls read(), and turns what Json throws into Error (usage); so it does with a state of another identity.
void restore_checked(const Json& state, const Json& identity, const std::function<void()>& read);

// Deals the tasks of each level out in a new random order every epoch; level 2 gets its share exactly (after n draws,
// floor(n x share) of them), not by chance.
class FixedMix : public TaskSampler {
 public:
  struct Config {
    double level2_share = 0.5;
    int64_t seed = 3;

    template <class V>
    void for_each_field(V& v) {
      v("level2_share", level2_share, "share of level-2 tasks, 0 to 1");
      v("seed", seed, "order of the tasks");
    }
    void validate() const {
      if (level2_share < 0 || level2_share > 1) throw usage_error("level2_share must be 0 to 1");
    }
  };
  // Throws Error (usage) when a level with a share has no tasks. Levels above 2 count as 2.
  FixedMix(std::vector<Task> tasks, const Config& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  struct Level {
    EpochShuffle order;  // Positions in tasks_.
    int64_t samples = 0, correct = 0;
  };
  Json identity() const;

  std::vector<Task> tasks_;
  Config config_;
  Level levels_[2];
  int64_t drawn_ = 0;
};

// The config's choice of a sampler. Extensions add theirs (app/assemble.cpp).
struct SamplerChoice : ConfigChoice<TaskSampler, std::vector<Task>> {
  SamplerChoice() : ConfigChoice("fixed_mix") { add<FixedMix>("fixed_mix", "a constant share of level 2"); }
};

}  // namespace tritonrl
