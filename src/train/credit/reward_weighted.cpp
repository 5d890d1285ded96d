// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/credit/credit.h"

namespace tritonrl {

void RewardWeightedConfig::validate() const {
  if (temperature <= 0) throw usage_error("temperature must be positive");
}

namespace {

class RewardWeighted : public Credit {
 public:
  explicit RewardWeighted(const RewardWeightedConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(std::span<Group> groups) override {
    std::vector<TrainExample> examples;
    for (Group& group : groups) {
      if (!group.trained_on) continue;
      double best = -INFINITY;
      for (const Sample& sample : group.samples) best = std::max(best, sample.reward ? sample.reward->value : best);
      for (Sample& sample : group.samples) {
        if (!sample.reward || sample.reward->value < config_.reward_above) continue;
        if (config_.finished_only && !sample.rollout.finished) continue;
        double reward = sample.reward->value;
        double weight = config_.weight == RewardWeight::kExp ? std::exp((reward - best) / config_.temperature)
                                                             : std::max(reward, 0.0);
        if (weight <= 0 || sample.rollout.tokens.empty()) continue;
        sample.advantage = {weight, weight};
        examples.push_back(example_of(group, sample));
      }
    }
    return examples;
  }

 private:
  RewardWeightedConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_reward_weighted(const RewardWeightedConfig& config) {
  return std::make_unique<RewardWeighted>(config);
}

}  // namespace tritonrl
