// SPDX-License-Identifier: Apache-2.0
#include "train/kl_reward.h"

namespace tritonrl {

double charge_divergence(Policy& policy, std::span<Group> groups, const LoraAdapter* reference,
                         const PolicyLossConfig& loss, double temperature, int64_t micro_batch_tokens) {
  std::vector<TrainExample> answers;
  std::vector<Sample*> samples;
  for (Group& group : groups) {
    for (Sample& sample : group.samples) {
      if (!sample.reward || sample.rollout.tokens.empty()) continue;
      answers.push_back(example_of(group, sample));
      samples.push_back(&sample);
    }
  }
  if (answers.empty()) return 0;
  auto divergences = answer_divergences(policy, answers, loss.kl_estimator, temperature, reference, micro_batch_tokens);
  double sum = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i]->divergence_price = loss.kl * divergences[i];
    sum += divergences[i];
  }
  return sum / static_cast<double>(samples.size());
}

}  // namespace tritonrl
