// SPDX-License-Identifier: Apache-2.0
#include "train/credit/returns.h"

#include <map>

namespace tritonrl {

std::vector<std::optional<Reward>> rewards_to_go(std::vector<std::optional<Reward>> rewards, double gamma) {
  if (gamma == 0) return rewards;
  for (size_t t = rewards.size(); t-- > 1;) {
    auto &before = rewards[t - 1], &after = rewards[t];
    if (!after) before.reset();
    if (!before) continue;
    for (double Reward::*part : {&Reward::value, &Reward::noise, &Reward::plan, &Reward::plan_noise}) {
      (*before).*part += gamma * ((*after).*part);
    }
  }
  return rewards;
}

void give_returns(std::span<Group> groups, double gamma) {
  for (Group& group : groups) {
    std::map<int64_t, std::vector<Sample*>> trajectories;  // Turns are in their order.
    for (Sample& sample : group.samples) trajectories[sample.rollout.trajectory].push_back(&sample);
    for (const auto& [number, turns] : trajectories) {
      std::vector<std::optional<Reward>> returns;
      for (const Sample* sample : turns) {
        std::optional<Reward> own = sample->reward;
        if (own) {
          own->value -= sample->divergence_price;
          own->plan -= sample->divergence_price;
        }
        returns.push_back(own);
      }
      returns = rewards_to_go(std::move(returns), gamma);
      for (size_t t = 0; t < turns.size(); ++t) turns[t]->to_go = returns[t];
    }
  }
}

}  // namespace tritonrl
