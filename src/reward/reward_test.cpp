// SPDX-License-Identifier: Apache-2.0
#include "reward/reward.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl::reward_test {
namespace {

Verdict stopped(Stage stage, Outcome outcome) {
  Verdict v;
  v.stopped_at = stage;
  v.outcome = outcome;
  return v;
}

TEST(Reward, HarnessFaultHasNone) {
  for (const char* shape : {"staged", "published", "binary", "speed", "hierarchical"}) {
    RewardConfig config;
    config.shape = *named<RewardShape>(shape);
    for (Stage stage : {Stage::kExtract, Stage::kCompile, Stage::kFullRun}) {
      EXPECT_FALSE(reward(stopped(stage, Outcome::kHarnessFault), config).has_value());
      EXPECT_FALSE(reward_parts(stopped(stage, Outcome::kHarnessFault), config).has_value());
    }
  }
}

TEST(Reward, StagedLadder) {
  RewardConfig config;
  EXPECT_EQ(*reward(stopped(Stage::kExtract, Outcome::kNoCode), config), 0.0);
  EXPECT_EQ(*reward(stopped(Stage::kSyntax, Outcome::kSyntaxError), config), 0.0);
  EXPECT_EQ(*reward(stopped(Stage::kCompile, Outcome::kRuleBreak), config), 0.1);
  EXPECT_EQ(*reward(stopped(Stage::kTinyRun, Outcome::kWrongOutput), config), 0.2);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kTimeout), config), 0.3);
  Verdict pass = stopped(Stage::kFullRun, Outcome::kPass);
  EXPECT_EQ(*reward(pass, config), 0.7);
  pass.speedup = 1.0;
  EXPECT_DOUBLE_EQ(*reward(pass, config), 0.85);
  pass.speedup = 50.0;
  EXPECT_DOUBLE_EQ(*reward(pass, config), 1.0);
}

TEST(Reward, PublishedScoresAWrongKernelLikeACorrectSlowOne) {
  RewardConfig config;
  config.shape = RewardShape::kPublished;
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kWrongOutput), config), 0.7);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kPass), config), 0.7);
}

TEST(Reward, Binary) {
  RewardConfig config;
  config.shape = RewardShape::kBinary;
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kWrongOutput), config), 0);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kPass), config), 1);
}

Verdict timed(double speedup) {
  Verdict pass = stopped(Stage::kTime, Outcome::kPass);
  pass.speedup = speedup;
  return pass;
}

TEST(Reward, SpeedIsTheCappedSpeedupOfACorrectCandidate) {
  RewardConfig config;
  config.shape = RewardShape::kSpeed;
  config.speed_cap = 4;
  EXPECT_EQ(*reward(timed(0.25), config), 0.25);
  EXPECT_EQ(*reward(timed(3), config), 3);
  EXPECT_EQ(*reward(timed(50), config), 4);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kPass), config), 1) << "not timed";
  Verdict fast_and_wrong = timed(50);
  fast_and_wrong.outcome = Outcome::kWrongOutput;
  EXPECT_EQ(*reward(fast_and_wrong, config), 0);
}

TEST(Reward, HierarchicalCreditsCodeForCorrectnessAndThePlanForSpeed) {
  RewardConfig config;
  config.shape = RewardShape::kHierarchical;
  RewardParts parts = *reward_parts(timed(1.5), config);
  EXPECT_EQ(parts.code, 1);
  EXPECT_EQ(parts.plan, 1.5);
  EXPECT_DOUBLE_EQ(*reward(timed(1.5), config), 1.15);
  EXPECT_DOUBLE_EQ(*reward(timed(9), config), 1.2);
  parts = *reward_parts(stopped(Stage::kTinyRun, Outcome::kWrongOutput), config);
  EXPECT_EQ(parts.code, 0);
  EXPECT_EQ(parts.plan, 0);
  config.shape = RewardShape::kStaged;
  parts = *reward_parts(timed(1), config);
  EXPECT_DOUBLE_EQ(parts.code, 0.85);
  EXPECT_DOUBLE_EQ(parts.plan, 0.85);
}

// Whatever the shape, more speed never earns less, and no failure earns more than a pass.
TEST(Reward, EveryShapeIsMonotone) {
  for (const char* shape : {"staged", "published", "binary", "speed", "hierarchical"}) {
    RewardConfig config;
    config.shape = *named<RewardShape>(shape);
    double last = *reward(timed(0.01), config);
    for (double speedup : {0.5, 1.0, 1.5, 2.0, 8.0}) {
      double now = *reward(timed(speedup), config);
      EXPECT_GE(now, last) << shape << " at " << speedup;
      last = now;
    }
    for (Stage stage : {Stage::kExtract, Stage::kSyntax, Stage::kCompile, Stage::kTinyRun, Stage::kFullRun}) {
      double failed = *reward(stopped(stage, Outcome::kUnsupported), config);
      EXPECT_LE(failed, *reward(timed(1), config)) << shape;
      EXPECT_GE(failed, 0) << shape;
    }
  }
}

TEST(Reward, ContradictoryConfigsAreRefused) {
  RewardConfig config;
  config.fail_rewards = {0, 0.1};
  EXPECT_THROW(config.validate(), Error);
  config.fail_rewards = {0.3, 0.1, 0.2, 0.3};
  EXPECT_THROW(config.validate(), Error);
  config.fail_rewards = {0, 0.1, 0.2, 0.9};
  EXPECT_THROW(config.validate(), Error);
  config = RewardConfig();
  EXPECT_NO_THROW(config.validate());
  config.plan_weight = -1;
  EXPECT_THROW(config.validate(), Error);
}

}  // namespace
}  // namespace tritonrl::reward_test
