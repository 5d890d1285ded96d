// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

class Reinforce : public Credit {
 public:
  explicit Reinforce(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(std::span<Group> groups) override {
    size_t part = 0;  // Code and plan have baselines of their own.
    return examples_with_advantages(groups, config_, [&](std::span<Peers> all) {
      double taken_off = baseline(part++, rewards_of(all));
      for (Peers& peers : all) {
        for (Compared& one : peers) one.advantage = one.reward - taken_off;
      }
    });
  }

  Json state() const override { return {{"baselines", moving_}}; }
  void restore(const Json& state) override { moving_ = state.value("baselines", std::vector<double>()); }

 private:
  double baseline(size_t part, const std::vector<double>& rewards) {
    if (config_.baseline == Baseline::kNone || rewards.empty()) return 0;
    double now = middle_of(rewards);
    if (config_.baseline == Baseline::kBatch) return now;
    if (moving_.size() <= part) moving_.resize(part + 1, now);  // The first step has nothing else.
    double taken_off = moving_[part];
    moving_[part] = config_.moving * taken_off + (1 - config_.moving) * now;
    return taken_off;
  }

  AdvantageConfig config_;
  std::vector<double> moving_;
};

}  // namespace

std::unique_ptr<Credit> make_reinforce(const AdvantageConfig& config) { return std::make_unique<Reinforce>(config); }

}  // namespace tritonrl
