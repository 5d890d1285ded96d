// SPDX-License-Identifier: Apache-2.0
// RolloutSource: where the samples of an RL step come from.
//
// With staleness 0 a step samples with the policy that it then trains. With 1 the rollouts of step N + 1 are sampled
// while step N verifies its own and trains on them, by the policy that step N began with: one update behind ("one-step
// off-policy"). What is given up is known exactly: which policy drew what does not depend on how long anything took, so
// runs repeat bit for bit (on the CPU) and continue after a stop as if there had been none.
//
//   step N      | verify R(N) | train P(N-1) -> P(N) |
//   sampler     |   R(N+1) drawn by P(N-1)  | R(N+2) by P(N) ...
//
// Answers and verdicts go into pending_*.jsonl as they come and are taken from there after a stop. A step is recorded
// as done only when the answers for the next are on the disk, since the policy that drew them may then be removed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/tasks/task_sampler.h"
#include "policy/policy.h"
#include "rollout/rollout_batch.h"
#include "rollout/shared_work.h"

namespace tritonrl {

struct RolloutRules {
  int64_t steps = 1;  // The last one draws nothing ahead.
  int64_t tasks_per_step = 1;
  int64_t samples = 1;
  int64_t most_rounds = 1;  // Of a step.
  int64_t staleness = 0;
  SamplingConfig sampling;
  TurnRules turns;
  Switch stream = Switch::kAuto;  // See should_stream (overlap.h).
};

class RolloutSource {
 public:
  // How long a step's candidates may compute; asked before the first of them is verified.
  using LimitsOf = std::function<OwnLimits(int64_t step)>;

  // `folder` is where answers are kept, `tasks` are the sampler's. Borrows tasks and sampler. `verifier` is called when
  // it is needed first. `shared`: with whom the tasks of a step are shared; everybody then has all samples.
  RolloutSource(RolloutRules rules, std::filesystem::path folder, const std::vector<Task>& tasks, TaskSampler& sampler,
                const Rng& rng, std::function<Verifier&()> verifier, LimitsOf limits, SharedWork shared = {});
  ~RolloutSource();

  // The next n tasks, or those that were chosen for that step before.
  std::vector<Task> next_tasks(int64_t step, int64_t n);
  // Answers of `policy`, known as `name`, to the step's next tasks, verified; with staleness 1 those that were begun
  // with the step before, and begins the next one's. Rounds of a step count from 0. Throws Interrupted when asked to
  // stop.
  Rollouts roll_out(int64_t step, int64_t round, const std::vector<Task>& tasks, Policy& policy,
                    const std::string& name);
  // Blocks until what was begun for the step after `step` is drawn and on the disk. Returns what to record with `step`:
  // null when nothing was begun.
  Json ahead(int64_t step);
  // Blocks until nothing is under way, so that others may use policy and verifier, or another verifier be opened.
  void drain();
  // The step is recorded as done.
  void done(int64_t step);
  // It was so before: `recorded` is what ahead() returned then.
  void restore(int64_t step, const Json& recorded);

 private:
  struct Assignment {
    std::vector<Task> tasks;
    std::string policy;   // Who draws.
    int64_t version = 0;  // Updates behind that policy.
  };
  std::filesystem::path pending(int64_t step, int64_t round = 0) const;
  RolloutWork work(int64_t step, int64_t round, const Assignment& what, const Policy& policy);
  void begin(int64_t step, Policy& policy, const std::string& name);
  Rollouts collect_ahead(int64_t step, Policy& policy, const std::string& name);

  const RolloutRules rules_;
  const std::filesystem::path folder_;
  std::map<std::string, const Task*> tasks_;
  TaskSampler& sampler_;
  const Rng rng_;
  std::function<Verifier&()> verifier_;
  LimitsOf limits_;
  const SharedWork shared_;
  std::map<int64_t, Assignment> assigned_;  // Of steps that were begun, or recorded as such.
  std::map<int64_t, std::unique_ptr<RolloutBatch>> batches_;
};

}  // namespace tritonrl
