// SPDX-License-Identifier: Apache-2.0
// Supervised fine-tuning: every answer token counts one.
#include "base/check.h"
#include "train/credit/credit.h"

namespace tritonrl {

TrainExample supervised_example(std::vector<int32_t> tokens, int64_t answer_begin, std::string task_id) {
  CHECK(answer_begin > 0 && answer_begin < static_cast<int64_t>(tokens.size())) << "answer at " << answer_begin;
  TrainExample example{std::move(tokens), {}, std::move(task_id), answer_begin};
  example.weights.assign(example.tokens.size(), 1.0f);
  std::fill(example.weights.begin(), example.weights.begin() + answer_begin, 0.0f);
  return example;
}

TrainExample example_of(const Group& group, const Rollout& rollout) {
  std::vector<int32_t> tokens = group.prompt_of(rollout);
  auto answer_begin = static_cast<int64_t>(tokens.size());
  tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
  return supervised_example(std::move(tokens), answer_begin, group.task.id);
}

}  // namespace tritonrl
