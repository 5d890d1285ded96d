// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/train_graph.h"
#include "train/credit/credit.h"
#include "train/optimizer.h"

namespace tritonrl {
namespace {

Group group_of(int64_t rollouts) {
  Group group;
  group.task.id = "t";
  group.prompt = {1, 2};
  for (int64_t r = 0; r < rollouts; ++r) {
    group.rollouts.push_back({{static_cast<int32_t>(10 + r), 3}, {-0.5f, -0.1f}, true, "text"});
  }
  return group;
}

TEST(Credit, SupervisedExampleHasLossOnTheAnswerOnly) {
  auto example = supervised_example({5, 6, 7, 8}, 2, "t");
  EXPECT_EQ(example.weights, (std::vector<float>{0, 0, 1, 1}));
}

TEST(BestOfN, KeepsTheBestKCorrectOnes) {
  std::vector<Group> groups = {group_of(5)};
  Rewards rewards = {{0.7, 0.9, std::nullopt, 0.3, 0.8}};
  Correct correct = {{true, true, true, false, true}};
  BestOfNConfig config;
  config.keep = 2;
  auto examples = make_best_of_n(config)->assign(groups, rewards, correct);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{1, 2, 11, 3}));
  EXPECT_EQ(examples[1].tokens, (std::vector<int32_t>{1, 2, 14, 3}));
  EXPECT_EQ(examples[0].weights, (std::vector<float>{0, 0, 1, 1}));
}

TEST(BestOfN, HarnessFaultsAndWrongOnesAreNeverKept) {
  std::vector<Group> groups = {group_of(2)};
  BestOfNConfig config;
  EXPECT_TRUE(make_best_of_n(config)->assign(groups, {{std::nullopt, 0.3}}, {{true, false}}).empty());
}

TEST(BestOfN, PublishedRuleKeepsWhatIsAboveHalf) {
  std::vector<Group> groups = {group_of(3)};
  BestOfNConfig config;
  config.rule = "reward";
  auto examples = make_best_of_n(config)->assign(groups, {{0.7, 0.5, 0.51}}, {{false, false, false}});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[1].tokens[2], 12);
}

TEST(BestOfN, EqualAnswersCountOnce) {
  Group group = group_of(3);
  group.rollouts[2].tokens = group.rollouts[0].tokens;
  BestOfNConfig config;
  auto once = make_best_of_n(config)->assign({group}, {{0.7, 0.7, 0.7}}, {{true, true, true}});
  EXPECT_EQ(once.size(), 2u);
  config.distinct = false;
  EXPECT_EQ(make_best_of_n(config)->assign({group}, {{0.7, 0.7, 0.7}}, {{true, true, true}}).size(), 3u);
}

TEST(LearningRate, WarmsUpThenFallsAsACosine) {
  OptimizerConfig config;
  config.lr = 1;
  config.warmup = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 20), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 20), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 2, 20), 1.0);
  EXPECT_NEAR(learning_rate(config, 11, 20), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(config, 20, 20), 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 1), 1.0);  // One step still learns.
}

// Two steps of one parameter, worked by hand from the paper's equations.
TEST(AdamW, FollowsTheHandWorkedNumbers) {
  OptimizerConfig config;
  config.weight_decay = 0.1;
  config.max_grad_norm = 0;
  auto p = at::full({1}, 1.0, at::kFloat);
  AdamW optimizer(config, {p});
  EXPECT_DOUBLE_EQ(optimizer.step({at::full({1}, 2.0, at::kFloat)}, 0.1), 2.0);
  // m = 0.2, v = 0.004, both corrected to 2 and 4: the step is lr * 2 / 2; decay is 1 - 0.1 * 0.1.
  EXPECT_NEAR(p.item<double>(), 0.99 - 0.1, 1e-6);
  optimizer.step({at::full({1}, -1.0, at::kFloat)}, 0.1);
  double m = 0.9 * 0.2 + 0.1 * -1, v = 0.999 * 0.004 + 0.001 * 1;
  double step = m / (1 - 0.81) / (std::sqrt(v / (1 - 0.999 * 0.999)) + 1e-8);
  EXPECT_NEAR(p.item<double>(), 0.89 * 0.99 - 0.1 * step, 1e-6);
}

TEST(AdamW, ClipsByTheNormOfAllGradients) {
  OptimizerConfig config;
  config.max_grad_norm = 1;
  auto a = at::zeros({1}), b = at::zeros({1});
  AdamW optimizer(config, {a, b});
  EXPECT_NEAR(optimizer.step({at::full({1}, 3.0), at::full({1}, 4.0)}, 0.1), 5.0, 1e-6);
  EXPECT_NEAR(optimizer.first_moments()[0].item<double>(), 0.1 * 0.6, 1e-6);
}

TEST(AdamW, SkipsGradientsThatAreNotFinite) {
  auto p = at::ones({1});
  AdamW optimizer({}, {p});
  EXPECT_FALSE(std::isfinite(optimizer.step({at::full({1}, NAN)}, 0.1)));
  EXPECT_EQ(p.item<double>(), 1.0);
  EXPECT_EQ(optimizer.steps_taken(), 0);
}

// A tiny model must be able to learn one sequence by heart.
TEST(Training, OverfitsOneSequence) {
  LoadOptions options;
  options.dtype = at::kFloat;
  auto weights = load_weights(TRITONRL_SOURCE_DIR "/tests/golden/model/llama_tiny", options);
  LoraConfig lora;
  lora.dropout = 0;
  auto adapter = LoraAdapter::create(*weights, lora, Rng(1));
  OptimizerConfig config;
  AdamW optimizer(config, adapter.parameters());
  std::vector<int32_t> tokens = {5, 17, 300, 42, 8, 99, 7, 2};
  PackedBatch batch;
  batch.append(tokens, std::vector<float>(tokens.size(), 1.0f / 7));
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    adapter.zero_gradients();
    last = forward_backward(*weights, adapter, batch, Rng(0)).loss;
    if (step == 0) first = last;
    optimizer.step(adapter.gradients(), 1e-2);
  }
  EXPECT_GT(first, 3);
  EXPECT_LT(last, 0.1 * first);
}

}  // namespace
}  // namespace tritonrl
