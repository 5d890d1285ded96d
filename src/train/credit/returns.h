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
// reward (gamma = 0): they copy an answer, not what was made of it, and a wrong answer is no better to copy because it
// was corrected later.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rollout/sample.h"

namespace tritonrl {

// Of one trajectory, turn after turn; empty = a harness fault. Plans' rewards add up likewise, and so does, at worst,
// the noise of both.
std::vector<std::optional<Reward>> rewards_to_go(std::vector<std::optional<Reward>> rewards, double gamma);

// Writes Sample::to_go: from its reward, less the price of divergence. With one turn a trajectory (or gamma = 0) it is
// that.
void give_returns(std::span<Group> groups, double gamma);

}  // namespace tritonrl
