// SPDX-License-Identifier: Apache-2.0
#include "reward/reward.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl {
namespace {

Verdict stopped(Stage stage, Outcome outcome) {
  Verdict v;
  v.stopped_at = stage;
  v.outcome = outcome;
  return v;
}

TEST(Reward, HarnessFaultHasNone) {
  for (const char* shape : {"staged", "published", "binary"}) {
    RewardConfig config;
    config.shape = shape;
    for (Stage stage : {Stage::kExtract, Stage::kCompile, Stage::kFullRun}) {
      EXPECT_FALSE(reward(stopped(stage, Outcome::kHarnessFault), config).has_value());
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
  config.shape = "published";
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kWrongOutput), config), 0.7);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kPass), config), 0.7);
}

TEST(Reward, Binary) {
  RewardConfig config;
  config.shape = "binary";
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kWrongOutput), config), 0);
  EXPECT_EQ(*reward(stopped(Stage::kFullRun, Outcome::kPass), config), 1);
}

TEST(Reward, ContradictoryConfigsAreRefused) {
  RewardConfig config;
  config.fail_rewards = {0, 0.1};
  EXPECT_THROW(config.validate(), Error);
  config.fail_rewards = {0.3, 0.1, 0.2, 0.3};
  EXPECT_THROW(config.validate(), Error);
  config.fail_rewards = {0, 0.1, 0.2, 0.9};
  EXPECT_THROW(config.validate(), Error);
}

}  // namespace
}  // namespace tritonrl
