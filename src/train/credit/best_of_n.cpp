// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

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

  std::vector<TrainExample> assign(std::span<Group> groups) override {
    std::vector<TrainExample> examples;
    for (Group& group : groups) {
      if (!group.trained_on) continue;
      std::vector<Sample*> best;
      for (Sample& sample : group.samples) {
        if (!sample.reward || (config_.finished_only && !sample.rollout.finished)) continue;
        bool eligible =
            config_.rule == KeepRule::kCorrect ? sample.verdict.correct() : sample.reward->value > config_.reward_above;
        if (eligible) best.push_back(&sample);
      }
      std::stable_sort(best.begin(), best.end(),
                       [](const Sample* a, const Sample* b) { return a->reward->value > b->reward->value; });
      std::set<std::vector<int32_t>> seen;
      int64_t kept = 0;
      for (Sample* sample : best) {
        if (kept == config_.keep) break;
        if (config_.distinct && !seen.insert(sample->rollout.tokens).second) continue;
        sample->advantage = {1, 1};
        examples.push_back(example_of(group, *sample));
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
