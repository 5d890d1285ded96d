// SPDX-License-Identifier: Apache-2.0
// Experience: what the rollouts of an RL step brought, and where it comes from.
//
// With rl.staleness 0 a step samples with the policy that it then trains. With 1 the rollouts of step N + 1 are sampled
// while step N verifies its own and trains on them, by the policy that step N began with: one update behind ("one-step
// off-policy"). What is given up is known exactly: which policy drew what does not depend on how long anything took, so
// runs repeat bit for bit (on the CPU) and go on after a stop as if there had been none.
//
//   step N      | verify R(N) | train P(N-1) -> P(N) |
//   sampler     |   R(N+1) drawn by P(N-1)  | R(N+2) by P(N) ...
//
// Answers and verdicts go into rollouts/pending_*.jsonl as they come and are taken from there after a stop. A step is
// recorded as done only when the answers for the next are on the disk, since the policy that drew them may then be
// removed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/rollout_batch.h"
#include "app/trained_policy.h"
#include "data/task_sampler.h"

namespace tritonrl {

struct Experience {
  Verified verified;
  Scores scores;                 // Each answer by its own verdict.
  Scores credited;               // What credit is given: for advantages the returns (train/credit/returns.h).
  std::vector<bool> trained_on;  // One a group; the others teach nothing (rl.resample_rounds).
  std::map<std::string, int64_t> outcomes;
  int64_t rounds = 0;
  int64_t staleness = 0;    // Updates between the policy that drew this and the one it trains.
  double divergence = 0;    // rl.loss.kl_in: reward: its mean over the answers, in nats.
  double wait_rollout = 0;  // How long the step waited for answers, in seconds.
  double wait_verify = 0;   // ... and then for verdicts.
  double idle = 0;          // Of both, while nothing was sampled.
};

class ExperienceSource {
 public:
  // `tasks` are the sampler's. Borrows all of them. `verifier` is called when it is needed first.
  ExperienceSource(const Config& config, RunDir& run, TrainedPolicy& policy, std::function<Verifier&()> verifier,
                   const std::vector<Task>& tasks, TaskSampler& sampler, const Rng& rng);
  ~ExperienceSource();

  // Of that step, and begins the next one's where rl.staleness is 1. REQUIRES: the policy that the step trains is
  // attached. Throws Interrupted when asked to stop.
  Experience gather(int64_t step);
  // Blocks until what was begun for the step after `step` is drawn and on the disk. Returns what to record with `step`:
  // null when nothing was begun.
  Json ahead(int64_t step);
  // Blocks until nothing is under way, so that others may use policy and verifier, or another verifier be opened.
  void settle();
  // The step is recorded as done.
  void done(int64_t step);
  // It was so before: `recorded` is what it recorded.
  void restore(int64_t step, const Json& recorded);

 private:
  struct Plan {
    std::vector<Task> tasks;
    std::string policy;   // Who draws.
    int64_t version = 0;  // Updates behind that policy.
  };
  std::string phase_of(int64_t step) const;
  std::filesystem::path pending(int64_t step, int64_t round = 0) const;
  RolloutWork work(int64_t step, const Plan& plan, int64_t round);
  Plan plan(int64_t step, int64_t tasks);
  void begin(int64_t step, Plan plan);
  Verified collect_ahead(int64_t step, Experience* all);
  Judged judge(const Verdict& verdict, const Rollout& rollout);
  bool useful(const std::vector<Judged>& group, const std::vector<Judged>& credited) const;
  int64_t add(Verified verified, const std::string& phase, Experience* all);

  const Config& config_;
  RunDir& run_;
  TrainedPolicy& policy_;
  std::function<Verifier&()> verifier_;
  std::map<std::string, const Task*> tasks_;
  TaskSampler& sampler_;
  Rng rng_;
  TurnRules turns_;
  std::map<int64_t, Plan> plans_;  // Of steps that were begun, or recorded as such.
  std::map<int64_t, std::unique_ptr<RolloutBatch>> batches_;
};

// A line of verdicts.jsonl. `reward`: empty = no score was given.
void write_verdict(RunDir& run, const Verdict& verdict, const std::string& phase, std::optional<double> reward);
// Where a step's rollouts are kept.
std::filesystem::path rollouts_file(const RunDir& run, int64_t step);
void save_rollouts(const std::filesystem::path& path, const Experience& experience, int64_t turns);

}  // namespace tritonrl
