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
};

// The rollouts of one task.
struct Group {
  Task task;
  std::vector<int32_t> prompt;
  std::vector<Rollout> rollouts;
};

}  // namespace tritonrl
