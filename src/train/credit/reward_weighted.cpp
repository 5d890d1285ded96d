// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/check.h"
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

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    CHECK(scores.size() == groups.size()) << groups.size() << " groups";
    std::vector<TrainExample> examples;
    for (size_t g = 0; g < groups.size(); ++g) {
      double best = -INFINITY;
      for (const Judged& judged : scores[g]) best = std::max(best, judged.reward.value_or(-INFINITY));
      for (size_t r = 0; r < groups[g].rollouts.size(); ++r) {
        const auto& reward = scores[g][r].reward;
        if (!reward || *reward < config_.reward_above) continue;
        if (config_.finished_only && !groups[g].rollouts[r].finished) continue;
        double weight = config_.weight == RewardWeight::kExp ? std::exp((*reward - best) / config_.temperature)
                                                             : std::max(*reward, 0.0);
        if (weight <= 0 || groups[g].rollouts[r].tokens.empty()) continue;
        TrainExample example = example_of(groups[g], groups[g].rollouts[r]);
        for (float& w : example.weights) w *= static_cast<float>(weight);
        examples.push_back(std::move(example));
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
