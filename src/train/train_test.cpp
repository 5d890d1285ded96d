// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "model/train_graph.h"
#include "train/code_tokens.h"
#include "train/credit/advantages.h"
#include "train/optimizer.h"

namespace tritonrl::train_test {
namespace {

// A group of answers with these rewards (empty = a harness fault), each of two tokens.
Group group_of(const std::vector<std::optional<double>>& rewards, const std::vector<bool>& correct = {}) {
  Group group;
  group.task.id = "t";
  for (size_t s = 0; s < rewards.size(); ++s) {
    Sample sample;
    sample.rollout = {{static_cast<int32_t>(10 + s), 3}, {-0.5f, -0.1f}, true, "text", {1, 2}};
    sample.verdict.outcome = !correct.empty() && correct[s] ? Outcome::kPass : Outcome::kWrongOutput;
    if (rewards[s]) sample.reward = sample.to_go = Reward{*rewards[s]};
    group.samples.push_back(std::move(sample));
  }
  return group;
}

std::vector<TrainExample> assign(const std::unique_ptr<Credit>& credit, std::vector<Group> groups) {
  return credit->assign(groups);
}

TEST(Credit, SupervisedExampleHasLossOnTheAnswerOnly) {
  auto example = supervised_example({5, 6, 7, 8}, 2, "t");
  EXPECT_EQ(example.weights, (std::vector<float>{0, 0, 1, 1}));
}

TEST(BestOfN, KeepsTheBestKCorrectOnes) {
  BestOfNConfig config;
  config.keep = 2;
  std::vector<Group> groups = {group_of({0.7, 0.9, std::nullopt, 0.3, 0.8}, {true, true, true, false, true})};
  auto examples = make_best_of_n(config)->assign(groups);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{1, 2, 11, 3}));
  EXPECT_EQ(examples[1].tokens, (std::vector<int32_t>{1, 2, 14, 3}));
  EXPECT_EQ(examples[0].weights, (std::vector<float>{0, 0, 1, 1}));
  for (size_t s = 0; s < 5; ++s) EXPECT_EQ(groups[0].samples[s].advantage.has_value(), s == 1 || s == 4) << s;
}

TEST(BestOfN, HarnessFaultsAndWrongOnesAreNeverKept) {
  EXPECT_TRUE(assign(make_best_of_n({}), {group_of({std::nullopt, 0.3}, {true, false})}).empty());
}

TEST(Credit, GroupsThatAreLeftOutCountForNothing) {
  Group left_out = group_of({0.9, 0.1}, {true, false}), group = group_of({0.5, 1}, {true, true});
  left_out.trained_on = false;
  AdvantageConfig config;  // Over the whole batch, which the group left out is no part of.
  config.scale = Scale::kBatch;
  for (auto make : {make_reinforce, make_grpo, make_reinforce_pp}) {
    auto alone = assign(make(config), {group}), beside = assign(make(config), {left_out, group});
    ASSERT_EQ(beside.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(beside[i].weights, alone[i].weights);
  }
  EXPECT_EQ(assign(make_best_of_n({}), {left_out, group}).size(), 2u);
  EXPECT_EQ(assign(make_reward_weighted({}), {left_out, group}).size(), 2u);
}

TEST(BestOfN, PublishedRuleKeepsWhatIsAboveHalf) {
  BestOfNConfig config;
  config.rule = KeepRule::kReward;
  auto examples = assign(make_best_of_n(config), {group_of({0.7, 0.5, 0.51})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[1].tokens[2], 12);
}

TEST(BestOfN, EqualAnswersCountOnce) {
  Group group = group_of({0.7, 0.7, 0.7}, {true, true, true});
  group.samples[2].rollout.tokens = group.samples[0].rollout.tokens;
  BestOfNConfig config;
  EXPECT_EQ(assign(make_best_of_n(config), {group}).size(), 2u);
  config.distinct = false;
  EXPECT_EQ(assign(make_best_of_n(config), {group}).size(), 3u);
}

TEST(BestOfN, CutOffAnswersAreNotImitatedUnlessAskedFor) {
  Group group = group_of({0.7, 0.9, 0.6}, {true, true, true});
  group.samples[1].rollout.finished = false;
  BestOfNConfig best;
  RewardWeightedConfig weighted;
  for (bool only : {true, false}) {
    best.finished_only = weighted.finished_only = only;
    EXPECT_EQ(assign(make_best_of_n(best), {group}).size(), only ? 2u : 3u);
    EXPECT_EQ(assign(make_reward_weighted(weighted), {group}).size(), only ? 2u : 3u);
  }
}

std::vector<float> answer_weights(const TrainExample& example) {
  return {example.weights.begin() + example.answer_begin, example.weights.end()};
}

TEST(RewardWeighted, WeighsByTheRewardOrItsExponential) {
  RewardWeightedConfig config;
  auto examples = assign(make_reward_weighted(config), {group_of({0.5, std::nullopt, 0.0, 1.0})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_FALSE(examples[0].has_advantages());
  EXPECT_EQ(examples[0].weights, (std::vector<float>{0, 0, 0.5f, 0.5f}));
  EXPECT_EQ(examples[1].weights, (std::vector<float>{0, 0, 1, 1}));
  config.weight = RewardWeight::kExp;
  config.temperature = 0.5;
  examples = assign(make_reward_weighted(config), {group_of({0.5, 1.0})});
  EXPECT_FLOAT_EQ(examples[0].weights[2], std::exp(-1.0f));
  EXPECT_EQ(examples[1].weights[2], 1);
}

TEST(Reinforce, BaselineIsTheBatchsMeanOrAMovingOneThatCheckpointsKeep) {
  AdvantageConfig config;
  auto first = assign(make_reinforce(config), {group_of({1, 0}), group_of({0, std::nullopt})});
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NEAR(first[0].weights[2], 1 - 1.0 / 3, 1e-6);
  EXPECT_EQ(first[0].sampled_log_probs, (std::vector<float>{-0.5f, -0.1f}));
  config.baseline = Baseline::kMoving;
  config.moving = 0.75;
  auto credit = make_reinforce(config);
  EXPECT_NEAR(assign(credit, {group_of({1, 0})})[0].weights[2], 0.5, 1e-6);
  auto resumed = make_reinforce(config);
  resumed->restore(credit->state());
  EXPECT_NEAR(assign(resumed, {group_of({1, 1})})[0].weights[2], 0.5, 1e-6);
  EXPECT_NEAR(assign(resumed, {group_of({0, 0})})[0].weights[2], -0.625, 1e-6);  // 0.75 * 0.5 + 0.25.
  config.baseline = Baseline::kNone;
  EXPECT_EQ(assign(make_reinforce(config), {group_of({1, 0.25})})[1].weights[2], 0.25);
}

TEST(ReinforcePlusPlus, NormalisesOverTheBatch) {
  auto examples = assign(make_reinforce_pp({}), {group_of({1, 0}), group_of({0.5, 0.5})});
  double spread = std::sqrt(2 * (0.25 + 0.25) / 7);  // Two tokens each, eight in all.
  EXPECT_NEAR(examples[0].weights[2], 0.5 / spread, 1e-5);
  EXPECT_NEAR(examples[1].weights[2], -0.5 / spread, 1e-5);
  EXPECT_EQ(examples[2].weights[2], 0);
  // Tokens count, not answers: 0.5 on six of them, -0.5 on two.
  Group longer = group_of({1, 0});
  longer.samples[0].rollout.tokens.resize(6, 9);
  longer.samples[0].rollout.log_probs.resize(6, -1);
  examples = assign(make_reinforce_pp({}), {longer});
  spread = std::sqrt((6 * 0.25 * 0.25 + 2 * 0.75 * 0.75) / 7);
  EXPECT_NEAR(examples[0].weights[7], 0.25 / spread, 1e-5);
  EXPECT_NEAR(examples[1].weights[2], -0.75 / spread, 1e-5);
}

TEST(Advantages, GroupsWithinTimingNoiseAreEqual) {
  AdvantageConfig config;
  config.scale = Scale::kNone;
  Group group = group_of({0.90, 0.92, std::nullopt});
  auto second = [&] { return assign(make_grpo(config), {group})[1].weights[2]; };
  group.samples[1].to_go->noise = 0.03;
  EXPECT_EQ(second(), 0);
  group.samples[1].to_go->noise = 0.01;
  EXPECT_NEAR(second(), 0.01, 1e-6);
  config.noise_filter = false;
  group.samples[1].to_go->noise = 0.03;
  EXPECT_NEAR(second(), 0.01, 1e-6);
}

TEST(Advantages, EqualRewardsGiveExactlyNothing) {
  Group group = group_of(std::vector<std::optional<double>>(8, 0.1));  // Whose mean, summed up, is another number.
  for (auto make : {make_reinforce, make_rloo, make_grpo, make_reinforce_pp}) {
    for (bool filter : {true, false}) {  // Without it nothing else makes them equal.
      AdvantageConfig config;
      config.noise_filter = filter;
      for (const TrainExample& example : assign(make(config), {group})) {
        EXPECT_EQ(answer_weights(example), (std::vector<float>{0, 0}));
      }
    }
  }
  EXPECT_TRUE(teaches_nothing(group, {}));
  group.samples[3].to_go->value = 0.11;
  EXPECT_FALSE(teaches_nothing(group, {}));
  group.samples[2].to_go->noise = 0.02;
  EXPECT_TRUE(teaches_nothing(group, {}));
}

TEST(Advantages, UnfinishedAnswersCanBeMasked) {
  AdvantageConfig config;
  Group group = group_of({1, 0, 0});
  group.samples[1].rollout.finished = false;
  EXPECT_EQ(assign(make_grpo(config), {group}).size(), 3u);
  config.mask_unfinished = true;
  auto examples = assign(make_grpo(config), {group});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_GT(examples[0].weights[2], 1);  // Its reward still counts in the group's mean.
}

// TritonRL: correctness to the code's tokens, speed to the plan's, by alpha.
TEST(Advantages, CodeAndPlanHaveTheirOwn) {
  AdvantageConfig config;
  config.scale = Scale::kNone;
  Group group = group_of({1, 0});
  group.samples[0].rollout.tokens = {4, 5, 6, 7};
  group.samples[0].rollout.log_probs = {-1, -1, -1, -1};
  group.samples[0].code = {{1, 3}};
  group.samples[0].to_go->plan = 2;
  auto examples = assign(make_grpo(config), {group});
  EXPECT_EQ(answer_weights(examples[0]), (std::vector<float>{0.1f, 0.5f, 0.5f, 0.5f}));  // After the code: its own.
  EXPECT_EQ(answer_weights(examples[1]), (std::vector<float>{-0.5f, -0.5f}));  // No code: the whole answer failed.
}

TEST(Overlong, PenaltyGrowsOverTheBuffer) {
  EXPECT_EQ(overlong_penalty(80, true, 100, 20), 0);
  EXPECT_DOUBLE_EQ(overlong_penalty(90, true, 100, 20), -0.5);
  EXPECT_EQ(overlong_penalty(100, true, 100, 20), -1);
  EXPECT_EQ(overlong_penalty(30, false, 100, 20), -1);
}

TEST(CodeTokens, AreThoseOfTheBlockThatIsVerified) {
  auto tokenizer = Tokenizer::load(source_dir() + "/tests/golden/tokenizer/smollm2_tiny");
  const std::string code = "import triton\nx = 'ä€'\n",
                    answer = "First a plan: tiles.\n```python\n" + code + "```\nDone.";
  Rollout rollout;
  rollout.tokens = tokenizer.encode_plain(answer);
  rollout.text = answer;
  auto span = code_tokens(tokenizer, rollout);
  ASSERT_TRUE(span.has_value());
  auto text = [&](int64_t from, int64_t to) {
    return tokenizer.decode(
        std::span(rollout.tokens).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
  };
  EXPECT_EQ(text(0, span->first).find("import"), std::string::npos);
  EXPECT_NE(text(span->first, span->second).find(code.substr(0, code.size() - 1)), std::string::npos);
  EXPECT_EQ(text(span->second, static_cast<int64_t>(rollout.tokens.size())).find("ä"), std::string::npos);
  rollout.text = "no code";
  rollout.tokens = tokenizer.encode_plain(rollout.text);
  EXPECT_FALSE(code_tokens(tokenizer, rollout).has_value());
}

TEST(LearningRate, ConstantRisesOnceAndStays) {
  OptimizerConfig config;
  config.lr = 1;
  config.schedule = Schedule::kConstant;
  config.warmup_updates = 4;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 2), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 2), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 500, 2), 1.0);
}

TEST(AdamW, StateGoesOnFromItsFile) {
  auto a = at::ones({2, 3}), b = at::ones({2, 3});
  AdamW one({}, {a}), other({}, {b});
  for (int i = 0; i < 3; ++i) {
    one.step({at::full({2, 3}, 0.5 * i + 0.1)}, 0.1);
    if (i == 0) other.step({at::full({2, 3}, 0.1)}, 0.1);
    if (i != 1) continue;
    std::string path = testing::TempDir() + "/optimizer.safetensors";
    one.save(path);
    b.copy_(a);
    other.load(path);
    EXPECT_EQ(other.steps_taken(), 2);
  }
  other.step({at::full({2, 3}, 1.1)}, 0.1);
  EXPECT_TRUE(at::equal(a, b));
  AdamW smaller({}, {at::ones({2})});
  EXPECT_THROW(smaller.load(testing::TempDir() + "/optimizer.safetensors"), Error);
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
  auto weights = load_weights(source_dir() + "/tests/golden/model/llama_tiny", options);
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
}  // namespace tritonrl::train_test
