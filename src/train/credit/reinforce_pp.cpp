// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

constexpr double kEps = 1e-8;

class ReinforcePlusPlus : public Credit {
 public:
  explicit ReinforcePlusPlus(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    return examples_with_advantages(groups, scores, config_, [](const GroupRewards& rewards) {
      GroupAdvantages out = minus_group_mean(rewards);
      std::vector<double> all;
      for (size_t g = 0; g < out.size(); ++g) {
        for (size_t r = 0; r < out[g].size(); ++r) {
          if (rewards[g][r]) all.push_back(out[g][r]);
        }
      }
      double middle = middle_of(all), spread = deviation(all);
      for (size_t g = 0; g < out.size(); ++g) {
        for (size_t r = 0; r < out[g].size(); ++r) {
          if (rewards[g][r]) out[g][r] = (out[g][r] - middle) / (spread + kEps);
        }
      }
      return out;
    });
  }

 private:
  AdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_reinforce_pp(const AdvantageConfig& config) {
  return std::make_unique<ReinforcePlusPlus>(config);
}

}  // namespace tritonrl
