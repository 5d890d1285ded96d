// SPDX-License-Identifier: Apache-2.0
#include "train/credit/returns.h"

#include <map>

#include "base/check.h"

namespace tritonrl {

std::vector<std::optional<double>> rewards_to_go(const std::vector<std::optional<double>>& rewards, double gamma) {
  std::vector<std::optional<double>> returns = rewards;
  if (gamma == 0) return returns;
  for (size_t t = rewards.size(); t-- > 1;) {
    auto& before = returns[t - 1];
    before = before && returns[t] ? std::optional(*before + gamma * *returns[t]) : std::nullopt;
  }
  return returns;
}

std::vector<Judged> with_returns(const Group& group, const std::vector<Judged>& scores, double gamma) {
  CHECK(scores.size() == group.rollouts.size()) << "a score for each rollout";
  std::map<int64_t, std::vector<size_t>> trajectories;  // Turns are in their order.
  for (size_t r = 0; r < scores.size(); ++r) trajectories[group.rollouts[r].trajectory].push_back(r);
  std::vector<Judged> out = scores;
  for (const auto& [number, turns] : trajectories) {
    auto sum_up = [&](double Judged::*part) {
      std::vector<std::optional<double>> values;
      for (size_t r : turns) values.push_back(scores[r].*part);
      values = rewards_to_go(values, gamma);
      for (size_t t = 0; t < turns.size(); ++t) out[turns[t]].*part = *values[t];
    };
    std::vector<std::optional<double>> rewards;
    for (size_t r : turns) rewards.push_back(scores[r].reward);
    rewards = rewards_to_go(rewards, gamma);
    for (size_t t = 0; t < turns.size(); ++t) out[turns[t]].reward = rewards[t];
    for (double Judged::*part : {&Judged::noise, &Judged::plan, &Judged::plan_noise}) sum_up(part);
  }
  return out;
}

}  // namespace tritonrl
