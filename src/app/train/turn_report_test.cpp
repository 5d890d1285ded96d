// SPDX-License-Identifier: Apache-2.0
#include "app/train/turn_report.h"

#include <gtest/gtest.h>

namespace tritonrl::turn_report_test {
namespace {

// Trajectories of one task as the rewards of their turns; 0.7 and more is correct, below 0 is a harness fault.
Rollouts step_of(const std::vector<std::vector<double>>& trajectories) {
  Rollouts step;
  step.groups.emplace_back();
  for (size_t turn = 1; turn <= 3; ++turn) {
    for (size_t t = 0; t < trajectories.size(); ++t) {
      if (trajectories[t].size() < turn) continue;
      Sample sample;
      sample.rollout.trajectory = static_cast<int64_t>(t);
      sample.rollout.turn = static_cast<int64_t>(turn);
      double reward = trajectories[t][turn - 1];
      if (reward >= 0) sample.reward = sample.to_go = Reward{reward};
      sample.verdict.outcome = reward >= 0.7 ? Outcome::kPass : Outcome::kWrongOutput;
      step.groups[0].samples.push_back(std::move(sample));
    }
  }
  return step;
}

TEST(TurnReport, CountsFirstLastAndBest) {
  // Corrected; right at once; corrected and broken again; a fault.
  Rollouts step = step_of({{0.1, 0.9}, {0.7}, {0.2, 0.8, 0.3}, {0.0, -1}});
  step.too_long = 2;
  step.groups[0].samples[0].to_go->value = 0.46;
  step.groups[0].samples[3].to_go.reset();
  Json line = turn_metrics(step, 3);
  EXPECT_EQ(line["turn/1/answers"], 4);
  EXPECT_EQ(line["turn/2/answers"], 2);
  EXPECT_EQ(line["turn/3/answers"], 1);
  EXPECT_DOUBLE_EQ(line["turn/1/correct_rate"], 0.25);
  EXPECT_EQ(line["correct_rate"], line["turn/1/correct_rate"]);
  EXPECT_DOUBLE_EQ(line["turn/2/correct_rate"], 1);
  EXPECT_DOUBLE_EQ(line["turn/1/reward"], 0.25);
  EXPECT_DOUBLE_EQ(line["turn/1/return"], (0.46 + 0.7 + 0.2) / 3);
  EXPECT_DOUBLE_EQ(line["turns/correct_first"], 1.0 / 3);  // Of three without a fault.
  EXPECT_DOUBLE_EQ(line["turns/correct_last"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(line["turns/correct_best"], 1);
  EXPECT_DOUBLE_EQ(line["turns/mended"], 1);  // Two of two wrong answers that were answered.
  EXPECT_DOUBLE_EQ(line["turns/broken"], 1);  // One of one.
  EXPECT_EQ(line["turns/too_long"], 2);
}

TEST(TurnReport, OneTurnAddsNothing) {
  EXPECT_EQ(turn_metrics(step_of({{0.1}, {0.7}}), 1), Json::object());
  EXPECT_EQ(within_turns({}), "");
}

TEST(TurnReport, AnEvaluationSaysHowManyWereCorrected) {
  LevelMetrics metrics;
  metrics.correct_within = {{4, 12}, {5, 12}};
  EXPECT_EQ(within_turns(metrics), ", 5 of 12 within 2 turns");
}

}  // namespace
}  // namespace tritonrl::turn_report_test
