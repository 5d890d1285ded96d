// SPDX-License-Identifier: Apache-2.0
// What credits with advantages share: the walk over groups, parts and tokens. A formula is a function of returns
// (and lengths) alone.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "train/credit/credit.h"

namespace tritonrl {

// One answer, as a formula sees it. Harness faults are not among them.
struct Compared {
  double reward = 0;     // What credit is given for: its return, or that of one part.
  double tokens = 0;     // How many it has.
  double advantage = 0;  // The formula's result.
};
using Peers = std::vector<Compared>;  // Answers that are compared with each other.
using Formula = std::function<void(std::span<Peers> all)>;

// The mean; exactly the value where all are equal, so that equal rewards have advantages of exactly 0.
double middle_of(const std::vector<double>& values);
// advantage = reward - mean of the peers.
void minus_group_mean(std::span<Peers> all);
// Standard deviation with n - 1, as TRL and PyTorch have it; 0 for fewer than two values.
double deviation(const std::vector<double>& values);
// In order.
std::vector<double> rewards_of(std::span<const Peers> all);

// An example for each sample that has a return, with `formula` applied to the returns, or to those of code and plan
// apart where the samples tell them apart.
std::vector<TrainExample> examples_with_advantages(std::span<Group> groups, const AdvantageConfig& config,
                                                   const Formula& formula);

// The formulas (AdvantageFormula), whatever config.formula says.
std::unique_ptr<Credit> make_reinforce(const AdvantageConfig& config);
std::unique_ptr<Credit> make_rloo(const AdvantageConfig& config);
std::unique_ptr<Credit> make_grpo(const AdvantageConfig& config);
std::unique_ptr<Credit> make_reinforce_pp(const AdvantageConfig& config);

}  // namespace tritonrl
