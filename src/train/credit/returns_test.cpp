// SPDX-License-Identifier: Apache-2.0
// Returns, and what they are compared with, against numbers worked out by hand.
#include "train/credit/returns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/credit/advantages.h"

namespace tritonrl::returns_test {
namespace {

using Rewards = std::vector<std::optional<double>>;

// A group of trajectories, given as the rewards of their turns; samples by turn, as rollout/conversation.h leaves them.
Group told(const std::vector<Rewards>& trajectories) {
  Group group;
  group.task.id = "t";
  for (size_t turn = 1; turn <= 3; ++turn) {
    for (size_t t = 0; t < trajectories.size(); ++t) {
      if (trajectories[t].size() < turn) continue;
      auto mark = static_cast<int32_t>(100 * turn + t);
      Sample sample;
      sample.rollout = {{mark}, {-0.5f}, true, "text", {1, 2}};
      sample.rollout.trajectory = static_cast<int64_t>(t);
      sample.rollout.turn = static_cast<int64_t>(turn);
      if (turn > 1) sample.rollout.prompt.assign(2 * turn, mark);
      if (auto reward = trajectories[t][turn - 1]) sample.reward = sample.to_go = Reward{*reward};
      sample.verdict.outcome = sample.reward && sample.reward->value >= 0.7 ? Outcome::kPass : Outcome::kWrongOutput;
      group.samples.push_back(std::move(sample));
    }
  }
  return group;
}

Rewards to_go(const Rewards& rewards, double gamma) {
  std::vector<std::optional<Reward>> in;
  for (const auto& reward : rewards) in.push_back(reward ? std::optional(Reward{*reward}) : std::nullopt);
  Rewards out;
  for (const auto& each : rewards_to_go(in, gamma)) out.push_back(each ? std::optional(each->value) : std::nullopt);
  return out;
}

TEST(Returns, AreRewardsToGo) {
  Rewards returns = to_go({0.1, 0.0, 0.8}, 0.4);
  ASSERT_EQ(returns.size(), 3u);
  EXPECT_DOUBLE_EQ(*returns[2], 0.8);
  EXPECT_DOUBLE_EQ(*returns[1], 0.32);
  EXPECT_DOUBLE_EQ(*returns[0], 0.228);  // 0.1 + 0.4 * 0 + 0.16 * 0.8.
  EXPECT_EQ(to_go({0.1, 0.0, 0.8}, 0), (Rewards{0.1, 0.0, 0.8}));
  EXPECT_DOUBLE_EQ(*to_go({0.25, 0.5, 1.0}, 1)[0], 1.75);
  EXPECT_EQ(to_go({0.3}, 0.4), (Rewards{0.3}));
  EXPECT_TRUE(to_go({}, 0.4).empty());
}

TEST(Returns, AFaultLeavesWhatLedToItWithoutOne) {
  EXPECT_EQ(to_go({0.1, 0.2, std::nullopt}, 0.4), (Rewards{std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(to_go({0.1, std::nullopt}, 0), (Rewards{0.1, std::nullopt}));
}

TEST(Returns, TrajectoriesKeepToThemselves) {
  Group group = told({{0.1, 0.9}, {0.7}, {0.0, std::nullopt}});
  ASSERT_EQ(group.samples.size(), 5u);
  Reward &first = *group.samples[0].reward, &second = *group.samples[3].reward;  // Trajectory 0, turn 1 and turn 2.
  first.noise = 0.02;
  second.noise = 0.05;
  first.plan = 0.5;
  second.plan = 0.25;
  give_returns({&group, 1}, 0.4);
  auto of = [&](size_t s) { return *group.samples[s].to_go; };
  EXPECT_DOUBLE_EQ(of(0).value, 0.46);
  EXPECT_DOUBLE_EQ(of(1).value, 0.7);
  EXPECT_FALSE(group.samples[2].to_go.has_value());
  EXPECT_DOUBLE_EQ(of(3).value, 0.9);
  EXPECT_FALSE(group.samples[4].to_go.has_value());
  EXPECT_DOUBLE_EQ(of(0).noise, 0.04);
  EXPECT_DOUBLE_EQ(of(0).plan, 0.6);
  EXPECT_DOUBLE_EQ(of(3).plan, 0.25);
  EXPECT_EQ(first.value, 0.1) << "the reward stays what the answer itself earned";
}

TEST(Returns, WithOneTurnTheyAreTheRewards) {
  Group group = told({{0.1}, {1.0 / 3}, {std::nullopt}});
  for (Sample& sample : group.samples) sample.to_go.reset();
  give_returns({&group, 1}, 0.4);
  EXPECT_EQ(group.samples[0].to_go->value, 0.1);
  EXPECT_EQ(group.samples[1].to_go->value, 1.0 / 3);
  EXPECT_FALSE(group.samples[2].to_go);
}

// What a credit gives each answer, in the order of the group's samples.
std::vector<double> advantages(Credit& credit, Group group) {
  std::vector<double> out;
  for (const TrainExample& example : credit.assign({&group, 1})) {
    EXPECT_EQ(example.tokens.size(), static_cast<size_t>(example.answer_begin) + 1);  // Loss on one turn's answer.
    for (int64_t t = 0; t < example.answer_begin; ++t) EXPECT_EQ(example.weights[static_cast<size_t>(t)], 0);
    out.push_back(example.weights.back());
  }
  return out;
}

// Returns of turn 1: 1, 2 and 6; of turn 2: 0 and 4. The second trajectory ended with its first answer.
Group five() { return told({{1, 0}, {2}, {6, 4}}); }

TEST(Turns, PooledAllAnswersToATaskAreOneGroup) {
  AdvantageConfig config;
  // Mean of 1, 2, 6, 0, 4 is 2.6; r - mean of the others = (r - 2.6) * 5 / 4.
  std::vector<double> expected = {-2, -0.75, 4.25, -3.25, 1.75};
  std::vector<double> got = advantages(*make_rloo(config), five());
  ASSERT_EQ(got.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  // Squares 2.56, 0.36, 11.56, 6.76, 1.96 sum to 23.2; over n - 1 = 4 that is 5.8.
  got = advantages(*make_grpo(config), five());
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(got[i], 0.8 * expected[i] / (std::sqrt(5.8) + 1e-4), 1e-6) << i;
}

TEST(Turns, ApartEachTurnIsAGroup) {
  AdvantageConfig config;
  config.turns = Turns::kApart;
  // Turn 1: 1 - (2 + 6) / 2, 2 - (1 + 6) / 2, 6 - (1 + 2) / 2. Turn 2: 0 - 4, 4 - 0.
  std::vector<double> expected = {-3, -1.5, 4.5, -4, 4};
  std::vector<double> got = advantages(*make_rloo(config), five());
  ASSERT_EQ(got.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  // Alone at its turn, an answer has nothing to be compared with.
  got = advantages(*make_rloo(config), told({{1, 3}, {2}}));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[2], 0);
}

TEST(Turns, TheNoiseFilterAndTheSilentGroupsFollowTheGrouping) {
  AdvantageConfig config;
  Group all = told({{1, 3}, {1, 3}});
  EXPECT_FALSE(teaches_nothing(all, config));
  config.turns = Turns::kApart;
  EXPECT_TRUE(teaches_nothing(all, config));
  EXPECT_EQ(advantages(*make_rloo(config), all), (std::vector<double>{0, 0, 0, 0}));
  all.samples[3].to_go->value = 3.5;
  EXPECT_FALSE(teaches_nothing(all, config));
  all.samples[2].to_go->noise = 0.5;
  EXPECT_TRUE(teaches_nothing(all, config));
  EXPECT_EQ(advantages(*make_rloo(config), all), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Turns, AnswersStandBehindTheirConversation) {
  Group group = five();
  auto examples = make_rloo({})->assign({&group, 1});
  ASSERT_EQ(examples.size(), 5u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{1, 2, 100}));
  EXPECT_EQ(examples[4].tokens, (std::vector<int32_t>{202, 202, 202, 202, 202}));
  EXPECT_EQ(examples[4].answer_begin, 4);
}

// Best-of-N copies answers: the corrected one with the conversation before it, not the wrong one that led there.
TEST(Turns, BestOfNKeepsTheBestAnswersOfAllTurns) {
  Group group = told({{0.1, 0.9}, {0.8}});
  auto examples = make_best_of_n({})->assign({&group, 1});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{200, 200, 200, 200, 200}));
  EXPECT_EQ(examples[1].tokens, (std::vector<int32_t>{1, 2, 101}));
}

}  // namespace
}  // namespace tritonrl::returns_test
