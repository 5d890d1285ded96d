// SPDX-License-Identifier: Apache-2.0
// Reward: a pure function of the verdict.
//
// A harness fault has no reward: the sample is dropped. A speedup is the verdict's, which is 1 within the noise band.
// Shapes:
//   staged        fail_rewards[stage it stopped at] for syntax (or no code), compile, tiny_run, full_run;
//                 correct_base + speed_bonus * min(speedup / speed_cap, 1) for a correct one (no bonus when not timed)
//   published     staged with [0.0, 0.3, 0.5, 0.7]: a kernel wrong at full size scores what a correct slow one does
//   binary        1 for a correct candidate, else 0
//   speed         min(speedup, speed_cap) for a correct candidate (1 when not timed), else 0
//   hierarchical  binary for the tokens of the code and speed for those of the plan before it (TritonRL); as one
//                 number: code + plan_weight * plan
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "verify/verdict.h"

namespace tritonrl {

enum class RewardShape { kStaged, kPublished, kBinary, kSpeed, kHierarchical };
constexpr auto enum_names(RewardShape) { return std::array{"staged", "published", "binary", "speed", "hierarchical"}; }

struct RewardConfig {
  RewardShape shape = RewardShape::kStaged;
  std::vector<double> fail_rewards = {0.0, 0.1, 0.2, 0.3};
  double correct_base = 0.7;
  double speed_bonus = 0.3;
  double speed_cap = 2.0;
  double plan_weight = 0.1;

  template <class V>
  void for_each_field(V& v) {
    v("shape", shape, "how a verdict becomes a number");
    v("fail_rewards", fail_rewards, "staged: stopped at syntax, compile, tiny_run, full_run");
    v("correct_base", correct_base, "staged and published: a correct candidate without its speed bonus");
    v("speed_bonus", speed_bonus, "staged and published: largest bonus for speed");
    v("speed_cap", speed_cap, "the speedup that earns the whole bonus, or the most that speed and hierarchical give");
    v("plan_weight", plan_weight, "hierarchical: weight of the plan's reward in the sum");
  }
  void validate() const;
};

// What the two parts of an answer earn.
struct RewardParts {
  double code = 0, plan = 0;
};

// None of these takes harness faults. REQUIRES: !verdict.is_harness_fault().
double staged_reward(const Verdict& verdict, const RewardConfig& config);
double published_reward(const Verdict& verdict, const RewardConfig& config);
double binary_reward(const Verdict& verdict);
double speed_reward(const Verdict& verdict, double cap);
RewardParts hierarchical_reward(const Verdict& verdict, double cap);

// Empty for a harness fault.
std::optional<double> reward(const Verdict& verdict, const RewardConfig& config);
// How far the noise of timing alone may move the reward between two equally fast candidates; 0 when it was not timed.
double reward_noise(const Verdict& verdict, const RewardConfig& config);
// The same for credit that tells plan from code: the shape's number for both, but for hierarchical.
std::optional<RewardParts> reward_parts(const Verdict& verdict, const RewardConfig& config);

}  // namespace tritonrl
