// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

constexpr double kVarianceFloor = 1e-8;

class ReinforcePlusPlus : public Credit {
 public:
  explicit ReinforcePlusPlus(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    return examples_with_advantages(groups, scores, config_, [](const GroupRewards& rewards, const GroupLengths& n) {
      GroupAdvantages out = minus_group_mean(rewards);
      auto each = [&](const auto& fn) {
        for (size_t g = 0; g < out.size(); ++g) {
          for (size_t r = 0; r < out[g].size(); ++r) {
            if (rewards[g][r]) fn(&out[g][r], static_cast<double>(n[g][r]));
          }
        }
      };
      double tokens = 0, sum = 0, squares = 0;
      each([&](double* a, double count) { tokens += count, sum += count * *a; });
      if (tokens < 2) return out;
      double middle = sum / tokens;
      each([&](double* a, double count) { squares += count * (*a - middle) * (*a - middle); });
      double scale = 1 / std::sqrt(squares / (tokens - 1) + kVarianceFloor);
      each([&](double* a, double) { *a = squares > 0 ? (*a - middle) * scale : 0; });
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
