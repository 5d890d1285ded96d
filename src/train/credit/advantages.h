// SPDX-License-Identifier: Apache-2.0
// What credits with advantages share: the walk over groups, parts and tokens. A formula is a function of rewards
// (and lengths) alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/credit/credit.h"

namespace tritonrl {

// [group][rollout]; empty stays out of every mean and gets 0.
using GroupRewards = std::vector<std::vector<std::optional<double>>>;
using GroupAdvantages = std::vector<std::vector<double>>;
using GroupLengths = std::vector<std::vector<int64_t>>;  // Tokens of the answers.

// The mean; exactly the value where all are equal, so that equal rewards have advantages of exactly 0.
double middle_of(const std::vector<double>& values);
GroupAdvantages minus_group_mean(const GroupRewards& rewards);
// Standard deviation with n - 1, as TRL and PyTorch have it; 0 for fewer than two values.
double deviation(const std::vector<double>& values);
// All values that are there, in order.
std::vector<double> all_of(const GroupRewards& rewards);

// An example for each rollout that has a reward, with `formula` applied to the rewards, or to those of code and plan
// apart where the scores tell them apart.
std::vector<TrainExample> examples_with_advantages(
    const std::vector<Group>& groups, const Scores& scores, const AdvantageConfig& config,
    const std::function<GroupAdvantages(const GroupRewards& rewards, const GroupLengths& lengths)>& formula);

// The formulas (AdvantageFormula), whatever config.formula says.
std::unique_ptr<Credit> make_reinforce(const AdvantageConfig& config);
std::unique_ptr<Credit> make_rloo(const AdvantageConfig& config);
std::unique_ptr<Credit> make_grpo(const AdvantageConfig& config);
std::unique_ptr<Credit> make_reinforce_pp(const AdvantageConfig& config);

}  // namespace tritonrl
