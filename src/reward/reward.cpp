// SPDX-License-Identifier: Apache-2.0
#include "reward/reward.h"

#include <algorithm>

#include "base/error.h"

namespace tritonrl {

void RewardConfig::validate() const {
  if (fail_rewards.size() != 4) {
    throw usage_error("fail_rewards needs four numbers", "", "for syntax, compile, tiny_run, full_run");
  }
  if (!std::is_sorted(fail_rewards.begin(), fail_rewards.end())) {
    throw usage_error("fail_rewards must not fall: a candidate that gets further may not score less");
  }
  if (shape == "staged" && fail_rewards.back() > correct_base) {
    throw usage_error(
        "the last of fail_rewards exceeds correct_base: a wrong kernel would score more than a correct one");
  }
  if (speed_bonus < 0 || speed_cap <= 0) throw usage_error("speed_bonus and speed_cap must be positive");
}

namespace {

size_t fail_index(Stage stage) {
  switch (stage) {
    case Stage::kExtract:
    case Stage::kSyntax:
      return 0;
    case Stage::kCompile:
      return 1;
    case Stage::kTinyRun:
      return 2;
    case Stage::kFullRun:
    case Stage::kTime:
      return 3;
  }
  return 0;
}

}  // namespace

std::optional<double> reward(const Verdict& verdict, const RewardConfig& config) {
  if (verdict.is_harness_fault()) return std::nullopt;
  if (config.shape == "binary") return verdict.correct() ? 1.0 : 0.0;
  if (!verdict.correct()) {
    static const std::vector<double> kPublished = {0.0, 0.3, 0.5, 0.7};
    return (config.shape == "published" ? kPublished : config.fail_rewards)[fail_index(verdict.stopped_at)];
  }
  double bonus = verdict.speedup ? std::clamp(*verdict.speedup / config.speed_cap, 0.0, 1.0) : 0.0;
  return config.correct_base + config.speed_bonus * bonus;
}

}  // namespace tritonrl
