// SPDX-License-Identifier: Apache-2.0
// Rollout: what a policy answered, with everything training needs to know about how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

// One sampled answer.
struct Rollout {
  std::vector<int32_t> tokens;       // The answer, stop token included when there was one.
  std::vector<float> log_probs;      // One a token; see SampledToken (policy/sampling.h).
  bool finished = false;             // Ended by itself rather than by the length limit.
  std::string text;                  // Decoded, without special tokens.
  std::vector<int32_t> prompt = {};  // What it answers: the task's prompt, or the conversation before it.
  // In a conversation (rollout/conversation.h).
  int64_t trajectory = 0;     // Which of a task's conversations, from 0.
  int64_t turn = 1;           // Which of its answers, from 1.
  std::string feedback = {};  // What it was told next; "" = nothing, the conversation ended here.
};

}  // namespace tritonrl
