// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

constexpr double kEps = 1e-4;  // As TRL.

class Grpo : public Credit {
 public:
  explicit Grpo(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(std::span<Group> groups) override {
    return examples_with_advantages(groups, config_, [&](std::span<Peers> all) {
      minus_group_mean(all);
      if (config_.scale == Scale::kNone) return;
      double batch = deviation(rewards_of(all));
      for (Peers& peers : all) {
        double spread = config_.scale == Scale::kBatch ? batch : deviation(rewards_of({&peers, 1}));
        for (Compared& one : peers) one.advantage /= spread + kEps;
      }
    });
  }

 private:
  AdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_grpo(const AdvantageConfig& config) { return std::make_unique<Grpo>(config); }

}  // namespace tritonrl
