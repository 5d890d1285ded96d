// SPDX-License-Identifier: Apache-2.0
// Returns, and what they are compared with, against numbers worked out by hand.
#include "train/credit/returns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/credit/advantages.h"

namespace tritonrl::returns_test {
namespace {

using Rewards = std::vector<std::optional<double>>;

// A group of trajectories, given as the rewards of their turns; rollouts by turn, as eval/conversation.h leaves them.
struct Told {
  Group group;
  std::vector<Judged> scores;
};

Told told(const std::vector<Rewards>& trajectories) {
  Told out;
  out.group.task.id = "t";
  out.group.prompt = {1, 2};
  for (size_t turn = 1; turn <= 3; ++turn) {
    for (size_t t = 0; t < trajectories.size(); ++t) {
      if (trajectories[t].size() < turn) continue;
      auto mark = static_cast<int32_t>(100 * turn + t);
      Rollout rollout{{mark}, {-0.5f}, true, "text"};
      rollout.trajectory = static_cast<int64_t>(t);
      rollout.turn = static_cast<int64_t>(turn);
      if (turn > 1) rollout.prompt.assign(2 * turn, mark);
      out.group.rollouts.push_back(rollout);
      Judged judged;
      judged.reward = trajectories[t][turn - 1];
      judged.correct = judged.reward.value_or(0) >= 0.7;
      judged.turn = rollout.turn;
      out.scores.push_back(judged);
    }
  }
  return out;
}

TEST(Returns, AreRewardsToGo) {
  Rewards returns = rewards_to_go({0.1, 0.0, 0.8}, 0.4);
  ASSERT_EQ(returns.size(), 3u);
  EXPECT_DOUBLE_EQ(*returns[2], 0.8);
  EXPECT_DOUBLE_EQ(*returns[1], 0.32);
  EXPECT_DOUBLE_EQ(*returns[0], 0.228);  // 0.1 + 0.4 * 0 + 0.16 * 0.8.
  EXPECT_EQ(rewards_to_go({0.1, 0.0, 0.8}, 0), (Rewards{0.1, 0.0, 0.8}));
  EXPECT_DOUBLE_EQ(*rewards_to_go({0.25, 0.5, 1.0}, 1)[0], 1.75);
  EXPECT_EQ(rewards_to_go({0.3}, 0.4), (Rewards{0.3}));
  EXPECT_TRUE(rewards_to_go({}, 0.4).empty());
}

TEST(Returns, AFaultLeavesWhatLedToItWithoutOne) {
  EXPECT_EQ(rewards_to_go({0.1, 0.2, std::nullopt}, 0.4), (Rewards{std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(rewards_to_go({0.1, std::nullopt}, 0), (Rewards{0.1, std::nullopt}));
}

TEST(Returns, TrajectoriesKeepToThemselves) {
  Told all = told({{0.1, 0.9}, {0.7}, {0.0, std::nullopt}});
  all.scores[0].noise = 0.02;  // Trajectory 0, turn 1 and turn 2.
  all.scores[3].noise = 0.05;
  all.scores[0].plan = 0.5;
  all.scores[3].plan = 0.25;
  std::vector<Judged> returns = with_returns(all.group, all.scores, 0.4);
  ASSERT_EQ(returns.size(), 5u);
  EXPECT_DOUBLE_EQ(*returns[0].reward, 0.46);
  EXPECT_DOUBLE_EQ(*returns[1].reward, 0.7);
  EXPECT_FALSE(returns[2].reward.has_value());
  EXPECT_DOUBLE_EQ(*returns[3].reward, 0.9);
  EXPECT_FALSE(returns[4].reward.has_value());
  EXPECT_DOUBLE_EQ(returns[0].noise, 0.04);
  EXPECT_DOUBLE_EQ(returns[0].plan, 0.6);
  EXPECT_DOUBLE_EQ(returns[3].plan, 0.25);
  EXPECT_FALSE(returns[0].correct);
  EXPECT_TRUE(returns[3].correct);
}

TEST(Returns, WithOneTurnTheyAreTheSameScores) {
  Told all = told({{0.1}, {1.0 / 3}, {std::nullopt}});
  std::vector<Judged> returns = with_returns(all.group, all.scores, 0.4);
  for (size_t r = 0; r < 3; ++r) EXPECT_EQ(returns[r].reward, all.scores[r].reward);
}

// What a credit gives each answer, in the order of the group's rollouts.
std::vector<double> advantages(Credit& credit, const Told& all) {
  std::vector<double> out;
  for (const TrainExample& example : credit.assign({all.group}, {all.scores})) {
    EXPECT_EQ(example.tokens.size(), static_cast<size_t>(example.answer_begin) + 1);  // Loss on one turn's answer.
    for (int64_t t = 0; t < example.answer_begin; ++t) EXPECT_EQ(example.weights[static_cast<size_t>(t)], 0);
    out.push_back(example.weights.back());
  }
  return out;
}

// Returns of turn 1: 1, 2 and 6; of turn 2: 0 and 4. The second trajectory ended with its first answer.
Told five() { return told({{1, 0}, {2}, {6, 4}}); }

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
  Told all = told({{1, 3}, {1, 3}});
  EXPECT_FALSE(teaches_nothing(all.scores, config));
  config.turns = Turns::kApart;
  EXPECT_TRUE(teaches_nothing(all.scores, config));
  EXPECT_EQ(advantages(*make_rloo(config), all), (std::vector<double>{0, 0, 0, 0}));
  all.scores[3].reward = 3.5;
  EXPECT_FALSE(teaches_nothing(all.scores, config));
  all.scores[2].noise = 0.5;
  EXPECT_TRUE(teaches_nothing(all.scores, config));
  EXPECT_EQ(advantages(*make_rloo(config), all), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Turns, AnswersStandBehindTheirConversation) {
  auto examples = make_rloo({})->assign({five().group}, {five().scores});
  ASSERT_EQ(examples.size(), 5u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{1, 2, 100}));
  EXPECT_EQ(examples[4].tokens, (std::vector<int32_t>{202, 202, 202, 202, 202}));
  EXPECT_EQ(examples[4].answer_begin, 4);
}

// Best-of-N copies answers: the mended one with the conversation before it, not the wrong one that led there.
TEST(Turns, BestOfNKeepsTheBestAnswersOfAllTurns) {
  Told all = told({{0.1, 0.9}, {0.8}});
  auto examples = make_best_of_n({})->assign({all.group}, {all.scores});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, (std::vector<int32_t>{200, 200, 200, 200, 200}));
  EXPECT_EQ(examples[1].tokens, (std::vector<int32_t>{1, 2, 101}));
}

}  // namespace
}  // namespace tritonrl::returns_test
