// SPDX-License-Identifier: Apache-2.0
#include "train/rewards.h"

#include <gtest/gtest.h>

#include "base/process/build_paths.h"

namespace tritonrl::rewards_test {
namespace {

// A correct answer of four tokens, a wrong one that was cut off, a harness fault.
Group group() {
  Group group;
  for (Outcome outcome : {Outcome::kPass, Outcome::kWrongOutput, Outcome::kHarnessFault}) {
    Sample& sample = group.samples.emplace_back();
    sample.rollout = {{1, 2, 3, 4}, {0, 0, 0, 0}, outcome != Outcome::kWrongOutput, "no code"};
    sample.verdict.outcome = outcome;
    sample.verdict.stopped_at = Stage::kFullRun;
  }
  return group;
}

Tokenizer tokenizer() { return Tokenizer::load(source_dir() + "/tests/golden/tokenizer/smollm2_tiny"); }

TEST(Rewards, AreTheVerdictsAndAFaultHasNone) {
  Group one = group();
  RewardRules rules;
  give_rewards({&one, 1}, rules, tokenizer());
  EXPECT_EQ(one.samples[0].reward->value, *reward(one.samples[0].verdict, rules.reward));
  EXPECT_EQ(one.samples[1].reward->value, *reward(one.samples[1].verdict, rules.reward));
  EXPECT_FALSE(one.samples[2].reward);
  charge_length({&one, 1}, rules);
  EXPECT_EQ(one.samples[0].reward->value, *reward(one.samples[0].verdict, rules.reward));
}

TEST(Rewards, LengthComesOffWhateverThePartsEarned) {
  Group one = group();
  RewardRules rules;
  rules.reward.shape = RewardShape::kHierarchical;
  rules.by_parts = true;
  rules.overlong_weight = 0.5;
  rules.overlong_tokens = 4;
  rules.longest_answer = 6;
  give_rewards({&one, 1}, rules, tokenizer());
  charge_length({&one, 1}, rules);
  EXPECT_EQ(one.samples[0].reward->value, 1 - 0.25);  // Two of the last four tokens, at half a reward in all.
  EXPECT_EQ(one.samples[0].reward->plan, 1 - 0.25);   // It was not timed: as fast as the reference.
  EXPECT_FALSE(one.samples[0].code) << "there is none in it";
  EXPECT_EQ(one.samples[1].reward->value, -0.5);
  EXPECT_EQ(one.samples[1].reward->plan, -0.5);
  EXPECT_FALSE(one.samples[2].reward);
}

}  // namespace
}  // namespace tritonrl::rewards_test
