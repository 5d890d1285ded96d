// SPDX-License-Identifier: Apache-2.0
#include "app/turn_report.h"

#include <gtest/gtest.h>

namespace tritonrl::turn_report_test {
namespace {

// Trajectories of one task as the rewards of their turns; 0.7 and more is correct, below 0 is a harness fault.
struct Step {
  Verified verified;
  Scores scores, returns;
};

Step step_of(const std::vector<std::vector<double>>& trajectories) {
  Step step;
  step.verified.groups.emplace_back();
  step.scores.emplace_back();
  for (size_t turn = 1; turn <= 3; ++turn) {
    for (size_t t = 0; t < trajectories.size(); ++t) {
      if (trajectories[t].size() < turn) continue;
      Rollout rollout;
      rollout.trajectory = static_cast<int64_t>(t);
      rollout.turn = static_cast<int64_t>(turn);
      step.verified.groups[0].rollouts.push_back(rollout);
      Judged judged;
      double reward = trajectories[t][turn - 1];
      if (reward >= 0) judged.reward = reward;
      judged.correct = reward >= 0.7;
      judged.turn = rollout.turn;
      step.scores[0].push_back(judged);
    }
  }
  step.returns = step.scores;
  return step;
}

TEST(TurnReport, CountsFirstLastAndBest) {
  // Mended; right at once; mended and broken again; a fault.
  Step step = step_of({{0.1, 0.9}, {0.7}, {0.2, 0.8, 0.3}, {0.0, -1}});
  step.verified.too_long = 2;
  step.returns[0][0].reward = 0.46;
  step.returns[0][3].reward.reset();
  Json line = turn_metrics(step.verified, step.scores, step.returns, 3);
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
  Step step = step_of({{0.1}, {0.7}});
  EXPECT_EQ(turn_metrics(step.verified, step.scores, step.returns, 1), Json::object());
  EXPECT_EQ(turn_fields({}, {}, 1), Json::object());
  EXPECT_EQ(within_turns({}), "");
}

TEST(TurnReport, RolloutsSayWhoseTurnTheyAre) {
  Rollout rollout;
  rollout.trajectory = 3;
  rollout.turn = 2;
  rollout.feedback = "told";
  Judged judged;
  judged.reward = 0.46;
  EXPECT_EQ(turn_fields(rollout, judged, 2),
            (Json{{"trajectory", 3}, {"turn", 2}, {"return", 0.46}, {"feedback", "told"}}));
  judged.reward.reset();
  EXPECT_TRUE(turn_fields(rollout, judged, 2)["return"].is_null());
  LevelMetrics metrics;
  metrics.correct_within = {{4, 12}, {5, 12}};
  EXPECT_EQ(within_turns(metrics), ", 5 of 12 within 2 turns");
}

}  // namespace
}  // namespace tritonrl::turn_report_test
