// SPDX-License-Identifier: Apache-2.0
#include "train/kl_reward.h"

#include "base/check.h"

namespace tritonrl {

double subtract_divergence(Policy& policy, const std::vector<Group>& groups, const LoraAdapter* reference,
                           const PolicyLossConfig& loss, double temperature, int64_t micro_batch_tokens,
                           Scores* scores) {
  CHECK(groups.size() == scores->size()) << groups.size() << " groups, " << scores->size() << " with scores";
  std::vector<TrainExample> answers;
  std::vector<Judged*> judged;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t r = 0; r < groups[g].rollouts.size(); ++r) {
      Judged& one = (*scores)[g][r];
      if (!one.reward || groups[g].rollouts[r].tokens.empty()) continue;
      answers.push_back(example_of(groups[g], groups[g].rollouts[r]));
      judged.push_back(&one);
    }
  }
  if (answers.empty()) return 0;
  auto divergences = answer_divergences(policy, answers, loss.kl_estimator, temperature, reference, micro_batch_tokens);
  double sum = 0;
  for (size_t i = 0; i < judged.size(); ++i) {
    *judged[i]->reward -= loss.kl * divergences[i];
    judged[i]->plan -= loss.kl * divergences[i];
    sum += divergences[i];
  }
  return sum / static_cast<double>(judged.size());
}

}  // namespace tritonrl
