// SPDX-License-Identifier: Apache-2.0
// KL in the reward (Ziegler et al. 2019; TRL's RLOO): instead of a term of the loss, the divergence from the policy
// that RL began with is taken off each answer's reward before returns and credit.
//
// The estimator is k1, log pi - log ref: the gradient of E[k1] through the score function, E[k1 * grad log pi], is that
// of KL(pi || ref). With k2 or k3 it vanishes to first order near the reference (for k3 it is the difference of the two
// directions' gradients), so the policy loss refuses them here.
#pragma once

#include <span>

#include "train/policy_loss.h"
#include "train/trainer.h"

namespace tritonrl {

// Sample::divergence_price = loss.kl * divergence, of every answer that has a reward. The divergence is the estimate
// loss.kl_estimator on the answer's own tokens, summed over them, of policy.adapter() as it is from `reference` (null =
// the base model), in nats. Returns its mean over those answers.
double charge_divergence(Policy& policy, std::span<Group> groups, const LoraAdapter* reference,
                         const PolicyLossConfig& loss, double temperature, int64_t micro_batch_tokens);

}  // namespace tritonrl
