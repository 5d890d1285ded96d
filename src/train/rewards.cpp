// SPDX-License-Identifier: Apache-2.0
#include "train/rewards.h"

#include "train/code_tokens.h"

namespace tritonrl {
namespace {

std::optional<Reward> reward_of(const Verdict& verdict, const RewardRules& rules) {
  std::optional<double> whole = reward(verdict, rules.reward);
  if (!whole) return std::nullopt;
  if (!rules.by_parts) return Reward{*whole, reward_noise(verdict, rules.reward)};
  RewardParts parts = *reward_parts(verdict, rules.reward);
  RewardConfig speed = rules.reward;
  speed.shape = RewardShape::kSpeed;
  return Reward{parts.code, 0, parts.plan, reward_noise(verdict, speed)};
}

}  // namespace

void give_rewards(std::span<Group> groups, const RewardRules& rules, const Tokenizer& tokenizer) {
  for (Group& group : groups) {
    for (Sample& sample : group.samples) {
      sample.reward = reward_of(sample.verdict, rules);
      if (sample.reward && rules.by_parts) sample.code = code_tokens(tokenizer, sample.rollout);
    }
  }
}

void charge_length(std::span<Group> groups, const RewardRules& rules) {
  if (rules.overlong_weight == 0) return;
  for (Group& group : groups) {
    for (Sample& sample : group.samples) {
      if (!sample.reward) continue;
      const Rollout& rollout = sample.rollout;
      double price =
          rules.overlong_weight * overlong_penalty(static_cast<int64_t>(rollout.tokens.size()), rollout.finished,
                                                   rules.longest_answer, rules.overlong_tokens);
      sample.reward->value += price;
      if (rules.by_parts) sample.reward->plan += price;
    }
  }
}

}  // namespace tritonrl
