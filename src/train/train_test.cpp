// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "base/build_paths.h"
#include "base/error.h"
#include "model/train_graph.h"
#include "train/code_tokens.h"
#include "train/credit/advantages.h"
#include "train/optimizer.h"

namespace tritonrl::train_test {
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

// Scores of one group.
std::vector<Judged> judged(const std::vector<std::optional<double>>& rewards, const std::vector<bool>& correct = {}) {
  std::vector<Judged> out;
  for (size_t i = 0; i < rewards.size(); ++i) out.push_back({rewards[i], !correct.empty() && correct[i]});
  return out;
}

TEST(Credit, SupervisedExampleHasLossOnTheAnswerOnly) {
  auto example = supervised_example({5, 6, 7, 8}, 2, "t");
  EXPECT_EQ(example.weights, (std::vector<float>{0, 0, 1, 1}));
}

TEST(BestOfN, KeepsTheBestKCorrectOnes) {
  std::vector<Group> groups = {group_of(5)};
  BestOfNConfig config;
  config.keep = 2;
  auto examples = make_best_of_n(config)->assign(
      groups, {judged({0.7, 0.9, std::nullopt, 0.3, 0.8}, {true, true, true, false, true})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{1, 2, 11, 3}));
  EXPECT_EQ(examples[1].tokens, (std::vector<int32_t>{1, 2, 14, 3}));
  EXPECT_EQ(examples[0].weights, (std::vector<float>{0, 0, 1, 1}));
}

TEST(BestOfN, HarnessFaultsAndWrongOnesAreNeverKept) {
  std::vector<Group> groups = {group_of(2)};
  BestOfNConfig config;
  EXPECT_TRUE(make_best_of_n(config)->assign(groups, {judged({std::nullopt, 0.3}, {true, false})}).empty());
}

TEST(BestOfN, PublishedRuleKeepsWhatIsAboveHalf) {
  std::vector<Group> groups = {group_of(3)};
  BestOfNConfig config;
  config.rule = KeepRule::kReward;
  auto examples = make_best_of_n(config)->assign(groups, {judged({0.7, 0.5, 0.51})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[1].tokens[2], 12);
}

TEST(BestOfN, EqualAnswersCountOnce) {
  Group group = group_of(3);
  group.rollouts[2].tokens = group.rollouts[0].tokens;
  BestOfNConfig config;
  auto once = make_best_of_n(config)->assign({group}, {judged({0.7, 0.7, 0.7}, {true, true, true})});
  EXPECT_EQ(once.size(), 2u);
  config.distinct = false;
  EXPECT_EQ(make_best_of_n(config)->assign({group}, {judged({0.7, 0.7, 0.7}, {true, true, true})}).size(), 3u);
}

TEST(BestOfN, CutOffAnswersAreNotImitatedUnlessAskedFor) {
  Group group = group_of(3);
  group.rollouts[1].finished = false;
  auto scores = judged({0.7, 0.9, 0.6}, {true, true, true});
  BestOfNConfig best;
  RewardWeightedConfig weighted;
  for (bool only : {true, false}) {
    best.finished_only = weighted.finished_only = only;
    EXPECT_EQ(make_best_of_n(best)->assign({group}, {scores}).size(), only ? 2u : 3u);
    EXPECT_EQ(make_reward_weighted(weighted)->assign({group}, {scores}).size(), only ? 2u : 3u);
  }
}

std::vector<float> answer_weights(const TrainExample& example) {
  return {example.weights.begin() + example.answer_begin, example.weights.end()};
}

TEST(RewardWeighted, WeighsByTheRewardOrItsExponential) {
  RewardWeightedConfig config;
  auto examples = make_reward_weighted(config)->assign({group_of(4)}, {judged({0.5, std::nullopt, 0.0, 1.0})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_FALSE(examples[0].has_advantages());
  EXPECT_EQ(examples[0].weights, (std::vector<float>{0, 0, 0.5f, 0.5f}));
  EXPECT_EQ(examples[1].weights, (std::vector<float>{0, 0, 1, 1}));
  config.weight = RewardWeight::kExp;
  config.temperature = 0.5;
  examples = make_reward_weighted(config)->assign({group_of(2)}, {judged({0.5, 1.0})});
  EXPECT_FLOAT_EQ(examples[0].weights[2], std::exp(-1.0f));
  EXPECT_EQ(examples[1].weights[2], 1);
}

TEST(Reinforce, BaselineIsTheBatchsMeanOrAMovingOneThatCheckpointsKeep) {
  AdvantageConfig config;
  auto first = make_reinforce(config)->assign({group_of(2), group_of(2)}, {judged({1, 0}), judged({0, std::nullopt})});
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NEAR(first[0].weights[2], 1 - 1.0 / 3, 1e-6);
  EXPECT_EQ(first[0].sampled_log_probs, (std::vector<float>{-0.5f, -0.1f}));
  config.baseline = Baseline::kMoving;
  config.moving = 0.75;
  auto credit = make_reinforce(config);
  EXPECT_NEAR(credit->assign({group_of(2)}, {judged({1, 0})})[0].weights[2], 0.5, 1e-6);
  auto resumed = make_reinforce(config);
  resumed->restore(credit->state());
  EXPECT_NEAR(resumed->assign({group_of(2)}, {judged({1, 1})})[0].weights[2], 0.5, 1e-6);
  EXPECT_NEAR(resumed->assign({group_of(2)}, {judged({0, 0})})[0].weights[2], -0.625, 1e-6);  // 0.75 * 0.5 + 0.25.
  config.baseline = Baseline::kNone;
  EXPECT_EQ(make_reinforce(config)->assign({group_of(2)}, {judged({1, 0.25})})[1].weights[2], 0.25);
}

TEST(ReinforcePlusPlus, NormalisesOverTheBatch) {
  auto examples = make_reinforce_pp({})->assign({group_of(2), group_of(2)}, {judged({1, 0}), judged({0.5, 0.5})});
  double spread = std::sqrt(2 * (0.25 + 0.25) / 7);  // Two tokens each, eight in all.
  EXPECT_NEAR(examples[0].weights[2], 0.5 / spread, 1e-5);
  EXPECT_NEAR(examples[1].weights[2], -0.5 / spread, 1e-5);
  EXPECT_EQ(examples[2].weights[2], 0);
  // Tokens count, not answers: 0.5 on six of them, -0.5 on two.
  Group longer = group_of(2);
  longer.rollouts[0].tokens.resize(6, 9);
  longer.rollouts[0].log_probs.resize(6, -1);
  examples = make_reinforce_pp({})->assign({longer}, {judged({1, 0})});
  spread = std::sqrt((6 * 0.25 * 0.25 + 2 * 0.75 * 0.75) / 7);
  EXPECT_NEAR(examples[0].weights[7], 0.25 / spread, 1e-5);
  EXPECT_NEAR(examples[1].weights[2], -0.75 / spread, 1e-5);
}

TEST(Advantages, GroupsWithinTimingNoiseAreEqual) {
  AdvantageConfig config;
  config.scale = Scale::kNone;
  auto scores = judged({0.90, 0.92});
  scores[1].noise = 0.03;
  EXPECT_EQ(make_grpo(config)->assign({group_of(2)}, {scores})[1].weights[2], 0);
  scores[1].noise = 0.01;
  EXPECT_NEAR(make_grpo(config)->assign({group_of(2)}, {scores})[1].weights[2], 0.01, 1e-6);
  scores.push_back({std::nullopt});  // Its noise is nobody's.
  scores.back().noise = 5;
  EXPECT_NEAR(make_grpo(config)->assign({group_of(3)}, {scores})[1].weights[2], 0.01, 1e-6);
  scores.pop_back();
  config.noise_filter = false;
  scores[1].noise = 0.03;
  EXPECT_NEAR(make_grpo(config)->assign({group_of(2)}, {scores})[1].weights[2], 0.01, 1e-6);
}

TEST(Advantages, EqualRewardsGiveExactlyNothing) {
  auto scores = judged(std::vector<std::optional<double>>(8, 0.1));  // Whose mean, summed up, is another number.
  for (auto make : {make_reinforce, make_rloo, make_grpo, make_reinforce_pp}) {
    for (bool filter : {true, false}) {  // Without it nothing else makes them equal.
      AdvantageConfig config;
      config.noise_filter = filter;
      for (const TrainExample& example : make(config)->assign({group_of(8)}, {scores})) {
        EXPECT_EQ(answer_weights(example), (std::vector<float>{0, 0}));
      }
    }
  }
  EXPECT_TRUE(teaches_nothing(scores, {}));
  scores[3].reward = 0.11;
  EXPECT_FALSE(teaches_nothing(scores, {}));
  scores[2].noise = 0.02;
  EXPECT_TRUE(teaches_nothing(scores, {}));
}

TEST(Advantages, UnfinishedAnswersCanBeMasked) {
  AdvantageConfig config;
  Group group = group_of(3);
  group.rollouts[1].finished = false;
  EXPECT_EQ(make_grpo(config)->assign({group}, {judged({1, 0, 0})}).size(), 3u);
  config.mask_unfinished = true;
  auto examples = make_grpo(config)->assign({group}, {judged({1, 0, 0})});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_GT(examples[0].weights[2], 1);  // Its reward still counts in the group's mean.
}

// TritonRL: correctness to the code's tokens, speed to the plan's, by alpha.
TEST(Advantages, CodeAndPlanHaveTheirOwn) {
  AdvantageConfig config;
  config.scale = Scale::kNone;
  Group group = group_of(2);
  group.rollouts[0].tokens = {4, 5, 6, 7};
  group.rollouts[0].log_probs = {-1, -1, -1, -1};
  auto scores = judged({1, 0});
  scores[0].code = {{1, 3}};
  scores[0].plan = 2;
  auto examples = make_grpo(config)->assign({group}, {scores});
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
