// SPDX-License-Identifier: Apache-2.0
// Rollouts: what a policy answered, with everything training needs to know about how.
#pragma once

#include <string>
#include <vector>

#include "data/task.h"

namespace tritonrl {

// One sampled answer.
struct Rollout {
  std::vector<int32_t> tokens;   // The answer, stop token included when there was one.
  std::vector<float> log_probs;  // One a token; see SampledToken (policy/sampling.h).
  bool finished = false;         // Ended by itself rather than by the length limit.
  std::string text;              // Decoded, without special tokens.
  // In a conversation (eval/conversation.h).
  int64_t trajectory = 0;            // Which of a task's conversations, from 0.
  int64_t turn = 1;                  // Which of its answers, from 1.
  std::vector<int32_t> prompt = {};  // The conversation before the answer; empty = the group's prompt.
  std::string feedback = {};         // What it was told next; "" = nothing, the conversation ended here.
};

// The rollouts of one task: the first answers of all trajectories, then the second ones, ...
struct Group {
  Task task;
  std::vector<int32_t> prompt;
  std::vector<Rollout> rollouts;

  const std::vector<int32_t>& prompt_of(const Rollout& rollout) const {
    return rollout.prompt.empty() ? prompt : rollout.prompt;
  }
};

}  // namespace tritonrl
