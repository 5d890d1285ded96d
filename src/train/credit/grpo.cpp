// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

constexpr double kEps = 1e-4;  // As TRL.

class Grpo : public Credit {
 public:
  explicit Grpo(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    return examples_with_advantages(groups, scores, config_, [&](const GroupRewards& rewards, const GroupLengths&) {
      GroupAdvantages out = minus_group_mean(rewards);
      if (config_.scale == Scale::kNone) return out;
      double batch = deviation(all_of(rewards));
      for (size_t g = 0; g < out.size(); ++g) {
        double spread = config_.scale == Scale::kBatch ? batch : deviation(all_of({rewards[g]}));
        for (double& advantage : out[g]) advantage /= spread + kEps;
      }
      return out;
    });
  }

 private:
  AdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_grpo(const AdvantageConfig& config) { return std::make_unique<Grpo>(config); }

}  // namespace tritonrl
