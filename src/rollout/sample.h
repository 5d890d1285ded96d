// SPDX-License-Identifier: Apache-2.0
// Sample: one answer and everything that becomes of it in a step; Group: the answers to one task. What the rooms hand
// each other; who writes which member, in this order (the price of length is taken off `reward` afterwards):
//
//   Group::task                        data     chosen by the sampler
//   rollout                            policy   the answer as it was drawn
//   verdict                            verify   what is wrong with it, or how fast it is
//   reward, code                       train/rewards.h (reward/reward.h)
//   divergence_price                   train/kl_reward.h
//   to_go                              train/credit/returns.h
//   Group::trained_on                  app/train/reinforcement.cpp
//   advantage                          train/credit/credit.h
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/run_dir.h"
#include "data/tasks/task.h"
#include "data/tasks/task_sampler.h"
#include "policy/rollout.h"
#include "verify/verdict.h"

namespace tritonrl {

// What an answer earned. Where plan and code are rewarded apart (reward shape hierarchical), `value` is the code's.
struct Reward {
  double value = 0;
  double noise = 0;  // How far the value may be moved by the noise of timing alone.
  double plan = 0, plan_noise = 0;
};

// What the tokens of an answer weigh in the update.
struct Advantage {
  double code = 0;  // Of all tokens, or of those from the code on.
  double plan = 0;  // Of those before it.
};

struct Sample {
  Rollout rollout;
  Verdict verdict;
  std::optional<Reward> reward = {};  // Of its own verdict and length. Empty = a harness fault: never used.
  // Tokens [first, second) are its code, where plan and code are rewarded apart. An answer without code has no plan:
  // all of it failed.
  std::optional<std::pair<int64_t, int64_t>> code = {};
  double divergence_price = 0;              // Comes off the reward before returns and credit.
  std::optional<Reward> to_go = {};         // The reward together with those of later turns. Empty = not known.
  std::optional<Advantage> advantage = {};  // Empty = it is not trained on.
};

// The answers to one task: the first ones of all trajectories, then the second ones, ...
struct Group {
  Task task;
  std::vector<Sample> samples;
  bool trained_on = true;  // Groups that teach nothing are left out where others can be drawn (rl.resample_rounds).
};

// What the task sampler is told: what a task asks of the policy is its first answer. REQUIRES: rewards.
std::vector<TaskResult> results_by_task(std::span<const Group> groups);

// A line of verdicts.jsonl. `reward`: empty = no score was given.
void write_verdict(RunDir& run, const Verdict& verdict, const std::string& phase, std::optional<double> reward = {});
void write_verdicts(RunDir& run, std::span<const Group> groups, const std::string& phase);

// "step_000042", as the files of a step are named.
std::string step_name(int64_t step);
// Where the samples of a step are kept.
std::filesystem::path samples_file(const RunDir& run, int64_t step);
// One line a sample. With `turns` > 1 also trajectory, turn, return, and the feedback that followed.
void save_samples(const std::filesystem::path& path, std::span<const Group> groups, int64_t turns);

}  // namespace tritonrl
