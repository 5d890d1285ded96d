// SPDX-License-Identifier: Apache-2.0
// Credit: from rewarded samples to per-token weights. Algorithms differ here, in the loss (train/policy_loss.h) and, a
// few, in how rewards are summed (train/credit/returns.h) and groups drawn again (app/train/reinforcement.cpp). A small
// file for each way to assign credit; Dr.GRPO, DAPO, GSPO and CISPO are GRPO's with another loss. `make_credit` in
// app/assemble.h chooses.
//
// Two sorts of examples come out: ones to imitate (weights multiply -log p; SFT, Best-of-N, reward-weighted) and ones
// with advantages, for a policy loss (REINFORCE, RLOO, the GRPO family).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/files/json.h"
#include "rollout/sample.h"
#include "train/train_example.h"

namespace tritonrl {

class Credit {
 public:
  virtual ~Credit() = default;
  // Gives the samples to be trained on their advantage and returns them as examples, in the order of the groups. Same
  // inputs and state, same examples. REQUIRES: rewards and returns (train/credit/returns.h).
  virtual std::vector<TrainExample> assign(std::span<Group> groups) = 0;
  // What is carried from step to step (a moving baseline), for checkpoints.
  virtual Json state() const { return Json::object(); }
  virtual void restore(const Json&) {}
};

// Best-of-N: keep up to k of a task's N samples, best reward first, and imitate them.
enum class KeepRule { kCorrect, kReward };  // Verified correct only; or reward above a threshold (the published rule).
constexpr auto enum_names(KeepRule) { return std::array{"correct", "reward"}; }
struct BestOfNConfig {
  int64_t keep = 3;
  KeepRule rule = KeepRule::kCorrect;
  double reward_above = 0.5;
  bool distinct = true;       // Equal answers count once.
  bool finished_only = true;  // Answers that were cut off are not imitated: they do not show how to end.

  template <class V>
  void for_each_field(V& v) {
    v("keep", keep, "samples kept per task (K)");
    v("rule", rule, "correct = verified correct; reward = above reward_above");
    v("reward_above", reward_above, "threshold of rule: reward");
    v("distinct", distinct, "equal answers count once");
    v("finished_only", finished_only, "leave out answers that the length limit cut off");
  }
  void validate() const;
};
std::unique_ptr<Credit> make_best_of_n(const BestOfNConfig& config);

// Reward-weighted regression (Peters and Schaal, 2007): imitate every sample, weighed by its reward or by
// exp((reward - the largest of its group) / temperature).
enum class RewardWeight { kReward, kExp };
constexpr auto enum_names(RewardWeight) { return std::array{"reward", "exp"}; }
struct RewardWeightedConfig {
  RewardWeight weight = RewardWeight::kReward;
  double temperature = 0.1;
  double reward_above = 0;
  bool finished_only = true;

  template <class V>
  void for_each_field(V& v) {
    v("weight", weight, "the reward itself (where positive), or exp(reward / temperature)");
    v("temperature", temperature, "of weight: exp");
    v("reward_above", reward_above, "samples with less are left out");
    v("finished_only", finished_only, "leave out answers that the length limit cut off");
  }
  void validate() const;
};
std::unique_ptr<Credit> make_reward_weighted(const RewardWeightedConfig& config);

// How rewards become advantages. All but the formula is common to them.
//   kReinforce    reward - baseline (Williams, 1992)
//   kRloo         reward - mean of the group's others (Kool et al., 2019; Ahmadian et al., 2024)
//   kGrpo         (reward - mean of the group) / (standard deviation + 1e-4) (Shao et al., 2024)
//   kReinforcePp  REINFORCE++ with the group as baseline (Hu, 2025): reward - mean of the group, then normalised over
//                 the tokens of all answers, (A - mean) / sqrt(variance + 1e-8): long answers count for more in both
enum class AdvantageFormula { kReinforce, kRloo, kGrpo, kReinforcePp };
enum class Scale { kGroup, kBatch, kNone };  // Divide by the standard deviation of these; or not at all (Dr.GRPO).
constexpr auto enum_names(Scale) { return std::array{"group", "batch", "none"}; }
enum class Baseline { kBatch, kMoving, kNone };
constexpr auto enum_names(Baseline) { return std::array{"batch", "moving", "none"}; }
enum class Turns { kPooled, kApart };
constexpr auto enum_names(Turns) { return std::array{"pooled", "apart"}; }

struct AdvantageConfig {
  AdvantageFormula formula = AdvantageFormula::kGrpo;  // No key: it comes with the algorithm, and keys with it.
  Scale scale = Scale::kGroup;                         // kGrpo.
  Baseline baseline = Baseline::kBatch;                // kReinforce.
  double moving = 0.9;                                 // Share of the old baseline that stays.
  bool noise_filter = true;      // A group whose rewards differ by no more than timing noise has equal rewards.
  bool mask_unfinished = false;  // Answers cut off by the length limit carry no loss (DAPO's overlong filtering).
  double plan_weight = 0.1;      // By parts: the plan's advantages count so much (TritonRL's alpha).
  // What the group of an answer is where answers have turns. pooled: all answers to the task (Kevin). apart: those of
  // the same turn; with rloo it is Dr. Kernel's turn-level leave-one-out. A return has fewer rewards to add the later
  // its turn, so pooled groups favour early answers whatever they say.
  Turns turns = Turns::kPooled;

  template <class V>
  void for_each_field(V& v) {
    v.when(formula == AdvantageFormula::kGrpo, "the GRPO family",
           [&] { v("scale", scale, "divide advantages by the standard deviation of these"); });
    v.when(formula == AdvantageFormula::kReinforce, "rl.algorithm: reinforce", [&] {
      v("baseline", baseline, "what is taken off the reward");
      v("moving", moving, "baseline: moving keeps this share of itself a step");
    });
    v("noise_filter", noise_filter, "rewards of a group that differ by no more than timing noise count as equal");
    v("mask_unfinished", mask_unfinished, "answers cut off by the length limit carry no loss");
    v("plan_weight", plan_weight, "reward shape hierarchical: weight of the plan's advantages");
    v("turns", turns, "several turns: a task's answers are compared all together, or those of each turn apart");
  }
  void validate() const;
};

// Are all returns of a group equal, up to what the noise filter takes for equal? Then its advantages are 0, for credits
// that compare the answers to one task.
bool teaches_nothing(const Group& group, const AdvantageConfig& config);

// By config.formula.
std::unique_ptr<Credit> make_advantages(const AdvantageConfig& config);

}  // namespace tritonrl
