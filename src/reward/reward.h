// SPDX-License-Identifier: Apache-2.0
// Reward: a pure function of the verdict.
//
// A harness fault has no reward: the sample is dropped. Shapes:
//   staged     fail_rewards[stage it stopped at] for syntax (or no code), compile, tiny_run, full_run;
//              correct_base + speed_bonus * min(speedup / speed_cap, 1) for a correct one (no bonus when not timed).
//   published  staged with [0.0, 0.3, 0.5, 0.7]: a kernel that is wrong at full size scores what a correct slow one
//   does. binary     1 for a correct candidate, else 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "verify/verdict.h"

namespace tritonrl {

struct RewardConfig {
  std::string shape = "staged";
  std::vector<double> fail_rewards = {0.0, 0.1, 0.2, 0.3};
  double correct_base = 0.7;
  double speed_bonus = 0.3;
  double speed_cap = 2.0;

  template <class V>
  void for_each_field(V& v) {
    v.choice("shape", shape, {"staged", "published", "binary"}, "how a verdict becomes a number");
    v("fail_rewards", fail_rewards, "staged: stopped at syntax, compile, tiny_run, full_run");
    v("correct_base", correct_base, "staged: a correct candidate without its speed bonus");
    v("speed_bonus", speed_bonus, "staged: largest bonus for speed");
    v("speed_cap", speed_cap, "staged: the speedup that earns the whole bonus");
  }
  void validate() const;
};

// Empty for a harness fault.
std::optional<double> reward(const Verdict& verdict, const RewardConfig& config);

}  // namespace tritonrl
