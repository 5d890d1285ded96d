// SPDX-License-Identifier: Apache-2.0
// Curricula: samplers that choose tasks by how the policy did on those before.
//
//   Adaptive  share of level 2 = least + (most - least) x min(accuracy on level 1 / target, 1): the harder level
//             comes in as the easier one is learnt
//   Gate      leaves out tasks whose last groups were all solved throughout, or not solved at all: best-of-n and
//             group-relative credit learn nothing from either
//   Promote   one difficulty at a time; the next once half of a window of rollouts is correct
//
// All deal tasks out in a new random order every epoch, and continue exactly after restore().
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "data/tasks/task_sampler.h"
#include "ext/curriculum/parts.h"

namespace tritonrl::curriculum {

class Adaptive : public TaskSampler {
 public:
  struct Config {
    int64_t window = 320;             // A few steps' worth.
    double least_level2_share = 0.1;  // At an accuracy of 0.
    double most_level2_share = 0.5;   // At target_accuracy and above.
    double target_accuracy = 0.4;     // On level 1.
    int64_t seed = 3;

    template <class V>
    void for_each_field(V& v) {
      v("window", window, "rollouts that the accuracy on level 1 is taken over");
      v("least_level2_share", least_level2_share, "share of level 2 while nothing of level 1 is solved");
      v("most_level2_share", most_level2_share, "share of level 2 from target_accuracy on");
      v("target_accuracy", target_accuracy, "accuracy on level 1 that gives the whole share");
      v("seed", seed, "order of the tasks");
    }
    void validate() const;
  };
  // Throws Error (usage) when either level has no tasks. Levels above 2 count as 2.
  Adaptive(std::vector<Task> tasks, const Config& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  std::vector<Task> tasks_;
  Config config_;
  std::vector<EpochShuffle> shuffles_;  // Of level 1 and level 2.
  SuccessWindow level1_;
  double owed_ = 0;  // Level-2 tasks that are due; below 1 after every draw.
};

// The share of level 2 at this accuracy on level 1, both 0 to 1.
double adaptive_share(double accuracy, const Adaptive::Config& config);

class Gate : public TaskSampler {
 public:
  struct Config {
    int64_t groups = 2;
    int64_t rest = 3;
    double level2_share = 0.5;
    int64_t seed = 3;

    template <class V>
    void for_each_field(V& v) {
      v("groups", groups, "groups in a row, all solved or none, after which a task rests");
      v("rest", rest, "epochs that such a task is left out");
      v("level2_share", level2_share, "share of level-2 tasks, 0 to 1");
      v("seed", seed, "order of the tasks");
    }
    void validate() const;
  };
  // Throws Error (usage) when either level has no tasks.
  Gate(std::vector<Task> tasks, const Config& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  struct History {
    std::deque<int> groups;    // The last ones: -1 never, 0 sometimes, +1 always solved.
    int64_t rests_until = -1;  // Epoch of its level in which it comes back; -1 = it does not rest.
  };
  bool rests(size_t task) const;
  const Task* draw(EpochShuffle& shuffle);

  std::vector<Task> tasks_;
  Config config_;
  std::vector<EpochShuffle> shuffles_;
  std::map<std::string, size_t> index_;  // By task id.
  std::vector<History> histories_;
  double owed_ = 0;
  int64_t passed_over_ = 0;
};

class Promote : public TaskSampler {
 public:
  struct Config {
    double at = 0.5;
    int64_t window = 320;
    int64_t seed = 3;

    template <class V>
    void for_each_field(V& v) {
      v("at", at, "accuracy that unlocks the next difficulty");
      v("window", window, "rollouts that it is taken over");
      v("seed", seed, "order of the tasks");
    }
    void validate() const;
  };
  // Throws Error (usage) when there are no tasks. A task whose difficulty is not known has that of its level.
  Promote(std::vector<Task> tasks, const Config& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;
  int64_t difficulty() const { return difficulties_[stage_]; }

 private:
  std::vector<Task> tasks_;
  Config config_;
  std::vector<int64_t> difficulties_;   // Ascending.
  std::vector<EpochShuffle> shuffles_;  // One for each.
  std::map<std::string, size_t> stage_of_;
  SuccessWindow window_;  // Of rollouts at the present difficulty.
  size_t stage_ = 0;
};

}  // namespace tritonrl::curriculum
