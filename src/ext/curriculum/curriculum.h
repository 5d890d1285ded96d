// SPDX-License-Identifier: Apache-2.0
// Curricula: samplers that choose tasks by how the policy did on those before.
//
//   Adaptive  share of level 2 = least + (most - least) x min(accuracy on level 1 / target, 1): the harder level
//             comes in as the easier one is learnt
//   Gate      leaves out tasks whose last groups were all solved throughout, or not solved at all: best-of-n and
//             group-relative credit learn nothing from either
//   Promote   one difficulty at a time; the next once half of a window of rollouts is correct
//
// All deal the tasks of a deck out in a new random order every epoch, and go on exactly after restore().
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "data/task_sampler.h"
#include "ext/curriculum/deck.h"

namespace tritonrl::curriculum {

// The share of level 2 at this accuracy on level 1, both 0 to 1.
double adaptive_share(double accuracy, const SamplerConfig& config);

class Adaptive : public TaskSampler {
 public:
  // Throws Error (usage) when either level has no tasks. Levels above 2 count as 2.
  Adaptive(std::vector<Task> tasks, const SamplerConfig& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  std::vector<Task> tasks_;
  SamplerConfig config_;
  std::vector<Deck> decks_;  // Of level 1 and level 2.
  SuccessWindow level1_;
  double owed_ = 0;  // Level-2 tasks that are due; below 1 after every draw.
};

class Gate : public TaskSampler {
 public:
  // Throws Error (usage) when either level has no tasks.
  Gate(std::vector<Task> tasks, const SamplerConfig& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;

 private:
  struct History {
    std::deque<int> groups;    // The last ones: -1 never, 0 sometimes, +1 always solved.
    int64_t rests_until = -1;  // Epoch of its deck in which it comes back; -1 = it does not rest.
  };
  bool rests(size_t task) const;
  const Task* draw(Deck& deck);

  std::vector<Task> tasks_;
  SamplerConfig config_;
  std::vector<Deck> decks_;
  std::map<std::string, size_t> index_;  // By task id.
  std::vector<History> histories_;
  double owed_ = 0;
  int64_t passed_over_ = 0;
};

class Promote : public TaskSampler {
 public:
  // Throws Error (usage) when there are no tasks. A task whose difficulty is not known has that of its level.
  Promote(std::vector<Task> tasks, const SamplerConfig& config);
  std::vector<const Task*> next(int64_t n) override;
  void observe(const std::vector<TaskResult>& results) override;
  Json state() const override;
  void restore(const Json& state) override;
  std::map<std::string, double> metrics() const override;
  int64_t difficulty() const { return difficulties_[stage_]; }

 private:
  std::vector<Task> tasks_;
  SamplerConfig config_;
  std::vector<int64_t> difficulties_;  // Ascending.
  std::vector<Deck> decks_;            // One for each.
  std::map<std::string, size_t> stage_of_;
  SuccessWindow window_;  // Of rollouts at the present difficulty.
  size_t stage_ = 0;
};

}  // namespace tritonrl::curriculum
