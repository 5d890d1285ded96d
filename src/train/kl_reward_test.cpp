// SPDX-License-Identifier: Apache-2.0
#include "train/kl_reward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/process/build_paths.h"
#include "model/train_graph.h"
#include "support/tiny_model.h"
#include "train/credit/returns.h"

namespace tritonrl::kl_reward_test {
namespace {

TEST(KlEstimate, HandWorked) {
  double f = std::log(0.5);  // The reference is half as likely.
  EXPECT_NEAR(kl_estimate(KlEstimator::kK1, f), std::log(2.0), 1e-12);
  EXPECT_NEAR(kl_estimate(KlEstimator::kK2, f), std::log(2.0) * std::log(2.0) / 2, 1e-12);
  EXPECT_NEAR(kl_estimate(KlEstimator::kK3, f), 0.5 - 1 + std::log(2.0), 1e-12);
}

TEST(KlReward, TakesTheDivergenceOffEveryReward) {
  PolicyConfig config;
  config.model = testing::TempDir() + "/kl_reward_test_model";
  config.device = "cpu";
  config.dtype = ComputeType::kFp32;
  write_tiny_model(config.model);
  Policy policy = Policy::open(config, PromptTemplate::load(source_dir() + "/prompts/triton.txt"));
  policy.set_adapter(LoraAdapter::create(policy.weights(), LoraConfig{}, Rng(1)));
  std::vector<Group> groups(1);
  std::vector<Sample>& samples = groups[0].samples;
  for (std::vector<int32_t> tokens : {std::vector<int32_t>{8, 9, 10}, {11, 12}, {13}}) {
    samples.emplace_back().rollout = {tokens, std::vector<float>(tokens.size()), true, "", {5, 6, 7}};
  }
  samples[0].reward = Reward{1.0};
  samples[1].reward = Reward{0.25};
  PolicyLossConfig loss;
  loss.kl = 0.5;
  loss.kl_estimator = KlEstimator::kK1;
  // A fresh adapter changes nothing: no divergence from the base model, by any way of batching.
  EXPECT_EQ(charge_divergence(policy, groups, nullptr, loss, 0.8, 3), 0);
  give_returns(groups, 0);
  EXPECT_EQ(samples[0].to_go->value, 1.0);

  at::InferenceMode no_autograd;
  for (at::Tensor& p : policy.adapter().parameters()) p.add_(0.05);
  double mean = charge_divergence(policy, groups, nullptr, loss, 0.8, 4096);
  give_returns(groups, 0);
  auto log_prob = [&](const LoraAdapter* adapter, const Rollout& rollout) {
    auto tokens = rollout.prompt;
    tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
    auto drawn = forward_logits(policy.weights(), adapter, tokens).slice(1, 0, policy.weights().vocab_limit);
    auto logits = at::log_softmax(drawn / 0.8, -1);
    double sum = 0;
    for (size_t t = rollout.prompt.size(); t < tokens.size(); ++t)
      sum += logits[static_cast<int64_t>(t) - 1][tokens[t]].item<double>();
    return sum;
  };
  double total = 0;
  for (size_t r = 0; r < 2; ++r) {
    double divergence = log_prob(&policy.adapter(), samples[r].rollout) - log_prob(nullptr, samples[r].rollout);
    EXPECT_GT(std::abs(divergence), 1e-3);
    EXPECT_NEAR(samples[r].to_go->value, (r == 0 ? 1.0 : 0.25) - 0.5 * divergence, 2e-3);
    EXPECT_NEAR(samples[r].to_go->plan, -0.5 * divergence, 2e-3);
    EXPECT_EQ(samples[r].reward->value, r == 0 ? 1.0 : 0.25) << "what is reported is what it earned";
    total += divergence;
  }
  EXPECT_NEAR(mean, total / 2, 4e-3);
  EXPECT_FALSE(samples[2].to_go) << "a harness fault stays without a reward";
}

}  // namespace
}  // namespace tritonrl::kl_reward_test
