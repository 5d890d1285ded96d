// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "train/credit/credit.h"

namespace tritonrl {

void BestOfNConfig::validate() const {
  if (keep < 1) throw usage_error("keep must be at least 1");
}

namespace {

class BestOfN : public Credit {
 public:
  explicit BestOfN(const BestOfNConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    CHECK(scores.size() == groups.size()) << groups.size() << " groups";
    std::vector<TrainExample> examples;
    for (size_t g = 0; g < groups.size(); ++g) {
      std::vector<size_t> order;
      for (size_t r = 0; r < groups[g].rollouts.size(); ++r) {
        const Judged& judged = scores[g][r];
        bool eligible =
            config_.rule == KeepRule::kCorrect ? judged.correct : judged.reward.value_or(0) > config_.reward_above;
        bool whole = groups[g].rollouts[r].finished || !config_.finished_only;
        if (judged.reward.has_value() && eligible && whole) order.push_back(r);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return *scores[g][a].reward > *scores[g][b].reward; });
      std::set<std::vector<int32_t>> seen;
      int64_t kept = 0;
      for (size_t r : order) {
        if (kept == config_.keep) break;
        if (config_.distinct && !seen.insert(groups[g].rollouts[r].tokens).second) continue;
        examples.push_back(example_of(groups[g], groups[g].rollouts[r]));
        ++kept;
      }
    }
    return examples;
  }

 private:
  BestOfNConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_best_of_n(const BestOfNConfig& config) { return std::make_unique<BestOfN>(config); }

}  // namespace tritonrl
