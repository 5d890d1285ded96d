// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

class LeaveOneOut : public Credit {
 public:
  explicit LeaveOneOut(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(const std::vector<Group>& groups, const Scores& scores) override {
    return examples_with_advantages(groups, scores, config_, [](const GroupRewards& rewards, const GroupLengths&) {
      GroupAdvantages out = minus_group_mean(rewards);
      for (size_t g = 0; g < out.size(); ++g) {  // r - mean of the others = (r - mean of all) n / (n - 1).
        auto n = static_cast<double>(all_of({rewards[g]}).size());
        for (double& advantage : out[g]) advantage *= n > 1 ? n / (n - 1) : 0;
      }
      return out;
    });
  }

 private:
  AdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_rloo(const AdvantageConfig& config) { return std::make_unique<LeaveOneOut>(config); }

}  // namespace tritonrl
