// SPDX-License-Identifier: Apache-2.0
// Rewards of a step's samples: what each verdict earns (reward/reward.h), and what the answer's length costs.
#pragma once

#include <span>

#include "model/tokenizer/tokenizer.h"
#include "reward/reward.h"
#include "rollout/sample.h"

namespace tritonrl {

struct RewardRules {
  RewardConfig reward;
  bool by_parts = false;        // Plan and code apart; reward.shape is hierarchical and credit gives advantages.
  double overlong_weight = 0;   // What an answer loses that reached the limit; 0 = length costs nothing.
  int64_t overlong_tokens = 0;  // Over the last so many tokens before the limit the price grows to that.
  int64_t longest_answer = 0;   // The limit.
  double gamma = 0;             // Of returns (train/credit/returns.h).
};

// Writes Sample::reward, by the verdict alone, and with by_parts where its code is. A harness fault has none.
void give_rewards(std::span<Group> groups, const RewardRules& rules, const Tokenizer& tokenizer);
// Takes the price of its length off each reward, the plan's too with by_parts.
void charge_length(std::span<Group> groups, const RewardRules& rules);

}  // namespace tritonrl
