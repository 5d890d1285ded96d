// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

namespace tritonrl {
namespace {

class LeaveOneOut : public Credit {
 public:
  explicit LeaveOneOut(const AdvantageConfig& config) : config_(config) {}

  std::vector<TrainExample> assign(std::span<Group> groups) override {
    return examples_with_advantages(groups, config_, [](std::span<Peers> all) {
      minus_group_mean(all);
      for (Peers& peers : all) {  // r - mean of the others = (r - mean of all) n / (n - 1).
        auto n = static_cast<double>(peers.size());
        for (Compared& one : peers) one.advantage *= n > 1 ? n / (n - 1) : 0;
      }
    });
  }

 private:
  AdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Credit> make_rloo(const AdvantageConfig& config) { return std::make_unique<LeaveOneOut>(config); }

}  // namespace tritonrl
