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

TrainExample example_of(const Group& group, const Sample& sample) {
  const Rollout& rollout = sample.rollout;
  std::vector<int32_t> tokens = rollout.prompt;
  tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
  TrainExample example =
      supervised_example(std::move(tokens), static_cast<int64_t>(rollout.prompt.size()), group.task.id);
  if (!sample.advantage) return example;
  for (size_t t = 0; t < rollout.tokens.size(); ++t) {
    bool plan = sample.code && static_cast<int64_t>(t) < sample.code->first;
    example.weights[rollout.prompt.size() + t] =
        static_cast<float>(plan ? sample.advantage->plan : sample.advantage->code);
  }
  return example;
}

}  // namespace tritonrl
