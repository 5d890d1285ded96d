// SPDX-License-Identifier: Apache-2.0
// TrainExample: one sequence that the trainer is given, with the weight of each token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rollout/sample.h"

namespace tritonrl {

// One sequence to train on. To imitate: weights[t] multiplies -log p(tokens[t] | before), 0 = no loss; prompt tokens
// have 0. With advantages: weights[t] is the token's advantage.
struct TrainExample {
  std::vector<int32_t> tokens;
  std::vector<float> weights;
  std::string task_id;
  int64_t answer_begin = 0;
  std::vector<float> sampled_log_probs = {};  // From answer_begin on, as drawn. Empty = an example to imitate.

  bool has_advantages() const { return !sampled_log_probs.empty(); }
};

// A supervised example: weight 1 on every token from answer_begin on.
TrainExample supervised_example(std::vector<int32_t> tokens, int64_t answer_begin, std::string task_id);
// The same from an answer, its tokens weighed by its advantage where it has one.
TrainExample example_of(const Group& group, const Sample& sample);

}  // namespace tritonrl
