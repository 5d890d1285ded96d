// SPDX-License-Identifier: Apache-2.0
// Conversations: what the verifier says of an answer becomes the user's next turn, and the policy answers again, up to
// `turns` times (Baronio et al., "Kevin: Multi-Turn RL for Generating CUDA Kernels", 2025; Liu et al., "Dr. Kernel",
// 2026). The samples of a task are trajectories that know nothing of each other.
//
// A trajectory ends
//   - after the last turn;
//   - with a harness fault: there is nothing to tell, and no score for that turn;
//   - with a correct answer, as stop_when_correct says. Kevin and Dr. Kernel continue and ask for a faster one, so does
//     "never". "untimed" does so only where the time was measured: without it the policy would be asked for something
//     that nobody can tell it has reached, and could only lose. "always" is for counting correct answers;
//   - when the next prompt would be longer than policy.max_prompt_tokens: counted (Rollouts::too_long), not cut,
//     because a conversation without its beginning is another task.
//
// The prompt of a turn is the whole conversation before it, rendered by the model's chat template from the texts, as
// any server would: the tokens of an earlier answer may be others than those that were drawn, and that is of no
// consequence since every turn is a training sample of its own, with the prompt it was drawn from. What an earlier
// answer spells cannot become a control token.
//
// Draws of turn t > 1 come from stream.at("turn").at(t).at(trajectory), where stream is the task's of turn 1: the same
// whatever the order, the slots, or which other trajectories have ended. A turn begins when the one before has all its
// verdicts.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/feedback_prompt.h"
#include "rollout/roll_out.h"

namespace tritonrl {

enum class StopWhenCorrect { kUntimed, kNever, kAlways };
constexpr auto enum_names(StopWhenCorrect) { return std::array{"untimed", "never", "always"}; }

struct TurnRules {
  int64_t turns = 1;  // Answers of a trajectory at most; 1 = no conversation, nothing below matters.
  StopWhenCorrect stop_when_correct = StopWhenCorrect::kUntimed;
  FeedbackPrompt prompt;
  int64_t feedback_chars = 1500;  // Longest feedback; its head and tail are kept.
  int64_t max_prompt_tokens = 1024;
};

// Is the policy to answer again behind this verdict, turns and length permitting?
bool goes_on(const Verdict& verdict, StopWhenCorrect stop_when_correct);

// Who takes part; tests put others in their place.
struct Speakers {
  std::function<std::vector<Message>(const Task&)> open;
  std::function<std::vector<int32_t>(const std::vector<Message>&)> encode;
  // One answer to each request and the verdict on it, in their order; the candidates lack only their texts.
  std::function<std::vector<Sample>(const std::vector<GenerateRequest>&, std::vector<Candidate> candidates,
                                    int64_t turn)>
      answer;
};

// Continues from first answers and their verdicts. Appends to each group's samples those of turn 2, then of turn 3,
// ..., each by trajectory, and adds to too_long. REQUIRES: a stream for each group.
void further_turns(Rollouts* rollouts, std::span<const Rng> streams, const TurnRules& rules, const Speakers& speakers);

// roll_out_and_verify, and then the other turns. With rules.turns = 1 it is roll_out_and_verify, bit for bit.
Rollouts hold_conversations(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                            int64_t samples, const SamplingConfig& sampling, const Rng& rng, const TurnRules& rules,
                            const Collecting& how);

}  // namespace tritonrl
