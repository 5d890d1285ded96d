// SPDX-License-Identifier: Apache-2.0
// The algorithms of reinforcement learning, by name. What a name stands for (how rewards become credit, which loss,
// with which defaults) is set in one place, RlConfig::choose (app/config.cpp).
#pragma once

#include "base/enum_names.h"

namespace tritonrl {

enum class Algorithm {
  kBestOfN,
  kRewardWeighted,
  kReinforce,
  kRloo,
  kGrpo,
  kDrGrpo,
  kDapo,
  kGspo,
  kCispo,
  kReinforcePp
};
constexpr auto enum_names(Algorithm) {
  return std::array{"best_of_n", "reward_weighted", "reinforce",   "rloo", "grpo", "dr_grpo", "dapo",
                    "gspo",      "cispo",           "reinforce_pp"};
}

// Does its credit give advantages, for a policy loss? The others imitate answers.
constexpr bool has_advantages(Algorithm a) { return a != Algorithm::kBestOfN && a != Algorithm::kRewardWeighted; }
// Are a task's answers compared with each other, so that one alone, or a group of equal rewards, teaches nothing?
constexpr bool compares_answers(Algorithm a) { return has_advantages(a) && a != Algorithm::kReinforce; }

}  // namespace tritonrl
