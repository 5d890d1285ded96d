// SPDX-License-Identifier: Apache-2.0
// Returns: what the turns of a conversation are worth together with what came after them.
//
// The return of turn t is its reward-to-go, the sum over k >= t of gamma^(k - t) r_k, where r_k is the reward of the
// verdict on turn k (Kevin: the sum with gamma = 0.4 served best). A wrong answer that led to a right one earns some of
// that one's reward, and every turn is a training sample of its own: the conversation before it is the prompt, and the
// loss is on its own answer.
//
// A harness fault ends a trajectory, and what would have come is not known. To leave it out of the sum would score it
// as 0, so no turn of that trajectory has a return (but where gamma is 0, which asks for nothing that came later). A
// trajectory that ends by itself (it is correct, the prompt would be too long) has earned what it has.
//
// Credits with advantages work on returns. Those that imitate (Best-of-N, reward-weighted) take each answer by its own
// reward: they copy an answer, not what was made of it, and a wrong answer is no better to copy because it was mended
// later.
#pragma once

#include <optional>
#include <vector>

#include "train/credit/credit.h"

namespace tritonrl {

// Of one trajectory, turn after turn; empty = a harness fault.
std::vector<std::optional<double>> rewards_to_go(const std::vector<std::optional<double>>& rewards, double gamma);

// The scores of a group with rewards-to-go in the place of rewards (those of the plan likewise). Their noise adds up as
// they do, at worst. With one turn a trajectory they are the same scores. REQUIRES: a score for each rollout.
std::vector<Judged> with_returns(const Group& group, const std::vector<Judged>& scores, double gamma);

}  // namespace tritonrl
