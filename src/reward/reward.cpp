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
  if (shape == RewardShape::kStaged && fail_rewards.back() > correct_base) {
    throw usage_error(
        "the last of fail_rewards exceeds correct_base: a wrong kernel would score more than a correct one");
  }
  if (speed_bonus < 0 || speed_cap <= 0) throw usage_error("speed_bonus and speed_cap must be positive");
  if (plan_weight < 0) throw usage_error("plan_weight must not be negative");
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

double staircase(const Verdict& verdict, const std::vector<double>& fail_rewards, const RewardConfig& config) {
  if (!verdict.correct()) return fail_rewards[fail_index(verdict.stopped_at)];
  double bonus = verdict.speedup ? std::clamp(*verdict.speedup / config.speed_cap, 0.0, 1.0) : 0.0;
  return config.correct_base + config.speed_bonus * bonus;
}

}  // namespace

double staged_reward(const Verdict& verdict, const RewardConfig& config) {
  return staircase(verdict, config.fail_rewards, config);
}

double published_reward(const Verdict& verdict, const RewardConfig& config) {
  return staircase(verdict, {0.0, 0.3, 0.5, 0.7}, config);
}

double binary_reward(const Verdict& verdict) { return verdict.correct() ? 1 : 0; }

double speed_reward(const Verdict& verdict, double cap) {
  return verdict.correct() ? std::min(verdict.speedup.value_or(1), cap) : 0;
}

RewardParts hierarchical_reward(const Verdict& verdict, double cap) {
  return {binary_reward(verdict), speed_reward(verdict, cap)};
}

std::optional<RewardParts> reward_parts(const Verdict& verdict, const RewardConfig& config) {
  if (config.shape == RewardShape::kHierarchical && !verdict.is_harness_fault()) {
    return hierarchical_reward(verdict, config.speed_cap);
  }
  auto both = reward(verdict, config);
  return both ? std::optional(RewardParts{*both, *both}) : std::nullopt;
}

std::optional<double> reward(const Verdict& verdict, const RewardConfig& config) {
  if (verdict.is_harness_fault()) return std::nullopt;
  if (config.shape == RewardShape::kBinary) return binary_reward(verdict);
  if (config.shape == RewardShape::kSpeed) return speed_reward(verdict, config.speed_cap);
  if (config.shape == RewardShape::kPublished) return published_reward(verdict, config);
  if (config.shape == RewardShape::kHierarchical) {
    RewardParts parts = hierarchical_reward(verdict, config.speed_cap);
    return parts.code + config.plan_weight * parts.plan;
  }
  return staged_reward(verdict, config);
}

double reward_noise(const Verdict& verdict, const RewardConfig& config) {
  if (!verdict.correct() || !verdict.timing || !verdict.speedup) return 0;
  Verdict slower = verdict, faster = verdict;
  *slower.speedup *= 1 - verdict.timing->noise_band;
  *faster.speedup *= 1 + verdict.timing->noise_band;
  return std::abs(*reward(faster, config) - *reward(slower, config));
}

}  // namespace tritonrl
