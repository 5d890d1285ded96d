// SPDX-License-Identifier: Apache-2.0
// Reinforcement learning, the phases rl/step_N of a run: docs/life_of_a_candidate.md tells one step.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/train/trained_policy.h"
#include "data/tasks/task_sampler.h"
#include "rollout/late_limits.h"
#include "rollout/rollout_source.h"
#include "train/rewards.h"

namespace tritonrl {

class Reinforcement {
 public:
  // `tasks` are those to learn on. Borrows all but `rng`. `verifier` is called when it is needed first.
  Reinforcement(const Config& config, RunDir& run, Checkpoints& checkpoints, TrainedPolicy& policy,
                const std::vector<Task>& tasks, const Rng& rng, std::function<Verifier&()> verifier, SharedWork shared);

  // The phase rl/step_N, from 1, one after the other; takes up its state where it is done. Throws Interrupted when
  // asked to stop.
  void step(int64_t step);
  // Blocks until nothing is under way, so that others may use policy and verifier.
  void drain() { source_.drain(); }

 private:
  // What a step trains on: the samples of all its rounds.
  struct Experience {
    Rollouts rollouts;
    int64_t rounds = 0;
    double divergence = 0;  // Sum of the rounds' means, in nats.
  };
  void learn(int64_t step);
  int64_t keep_useful(std::span<Group> groups, const RewardRules& rules) const;
  double price_divergence(std::span<Group> groups);
  TrainSummary update(int64_t step, const std::vector<TrainExample>& examples);
  Json write_step(int64_t step, const Experience& all, int64_t examples, const TrainSummary& summary, double seconds);

  const Config& config_;
  RunDir& run_;
  Checkpoints& checkpoints_;
  TrainedPolicy& policy_;
  const Rng rng_;
  std::function<Verifier&()> verifier_;
  std::unique_ptr<TaskSampler> sampler_;
  std::unique_ptr<Credit> credit_;
  LateLimits late_;
  RolloutSource source_;
};

}  // namespace tritonrl
