// SPDX-License-Identifier: Apache-2.0
#include "train/kl_reward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/build_paths.h"
#include "model/train_graph.h"
#include "policy/tiny_model.h"

namespace tritonrl::kl_reward_test {
namespace {

TEST(KlEstimate, HandWorked) {
  double f = std::log(0.5);  // The reference is half as likely.
  EXPECT_NEAR(kl_estimate(KlEstimator::kK1, f), std::log(2.0), 1e-12);
  EXPECT_NEAR(kl_estimate(KlEstimator::kK2, f), std::log(2.0) * std::log(2.0) / 2, 1e-12);
  EXPECT_NEAR(kl_estimate(KlEstimator::kK3, f), 0.5 - 1 + std::log(2.0), 1e-12);
}

TEST(KlReward, TakesTheDivergenceOffEveryScore) {
  PolicyConfig config;
  config.model = testing::TempDir() + "/kl_reward_test_model";
  config.device = "cpu";
  config.dtype = ComputeType::kFp32;
  write_tiny_model(config.model);
  Policy policy = Policy::open(config, PromptTemplate::load(source_dir() + "/prompts/triton.txt"));
  policy.set_adapter(LoraAdapter::create(policy.weights(), LoraConfig{}, Rng(1)));
  Group group;
  group.task.id = "t";
  group.prompt = {5, 6, 7};
  group.rollouts = {{{8, 9, 10}, {0, 0, 0}, true, ""}, {{11, 12}, {0, 0}, true, ""}, {{13}, {0}, true, ""}};
  PolicyLossConfig loss;
  loss.kl = 0.5;
  loss.kl_estimator = KlEstimator::kK1;
  Scores same = {{{1.0}, {0.25}, {std::nullopt}}};
  // A fresh adapter changes nothing: no divergence from the base model, by any way of batching.
  EXPECT_EQ(subtract_divergence(policy, {group}, nullptr, loss, 0.8, 3, &same), 0);
  EXPECT_EQ(*same[0][0].reward, 1.0);

  at::InferenceMode no_autograd;
  for (at::Tensor& p : policy.adapter().parameters()) p.add_(0.05);
  Scores moved = {{{1.0}, {0.25}, {std::nullopt}}};
  double mean = subtract_divergence(policy, {group}, nullptr, loss, 0.8, 4096, &moved);
  auto log_prob = [&](const LoraAdapter* adapter, const Rollout& rollout) {
    auto tokens = group.prompt;
    tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
    auto drawn = forward_logits(policy.weights(), adapter, tokens).slice(1, 0, policy.weights().vocab_limit);
    auto logits = at::log_softmax(drawn / 0.8, -1);
    double sum = 0;
    for (size_t t = group.prompt.size(); t < tokens.size(); ++t)
      sum += logits[static_cast<int64_t>(t) - 1][tokens[t]].item<double>();
    return sum;
  };
  double total = 0;
  for (size_t r = 0; r < 2; ++r) {
    double divergence = log_prob(&policy.adapter(), group.rollouts[r]) - log_prob(nullptr, group.rollouts[r]);
    EXPECT_GT(std::abs(divergence), 1e-3);
    EXPECT_NEAR(*moved[0][r].reward, (r == 0 ? 1.0 : 0.25) - 0.5 * divergence, 2e-3);
    EXPECT_NEAR(moved[0][r].plan, -0.5 * divergence, 2e-3);
    total += divergence;
  }
  EXPECT_NEAR(mean, total / 2, 4e-3);
  EXPECT_FALSE(moved[0][2].reward) << "a harness fault stays without a score";
}

}  // namespace
}  // namespace tritonrl::kl_reward_test
