// SPDX-License-Identifier: Apache-2.0
// What is written of samples, and what the task sampler hears of them.
#include "rollout/sample.h"

#include <gtest/gtest.h>

#include "base/files/json.h"
#include "base/text.h"
#include "rollout/evaluation.h"
#include "support/made_up_finding.h"

namespace tritonrl::sample_test {
namespace {

namespace fs = std::filesystem;

// Two trajectories: wrong and then right; a harness fault.
Group group() {
  Group group;
  group.task.id = "t";
  group.task.level = 2;
  for (int i = 0; i < 3; ++i) {
    Sample sample;
    sample.rollout = {{1, 2}, {-0.5f, -0.25f}, i != 1, cat("text ", i), {7}, i % 2, 1 + i / 2};
    made_up_end(sample.verdict, Stage::kFullRun,
                i == 0   ? Outcome::kWrongOutput
                : i == 1 ? Outcome::kHarnessFault
                         : Outcome::kPass);

    group.samples.push_back(std::move(sample));
  }
  group.samples[0].rollout.feedback = "told";
  group.samples[0].reward = Reward{0.25};
  group.samples[0].to_go = Reward{0.75};
  group.samples[2].reward = group.samples[2].to_go = Reward{1};
  return group;
}

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> lines;
  for_each_json_line(file, [&](int64_t, const Json& line) { lines.push_back(line); });
  return lines;
}

TEST(Samples, TheTaskSamplerHearsOfFirstAnswersThatWereScored) {
  Group one = group();
  std::vector<TaskResult> results = results_by_task({&one, 1});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].task_id, "t");
  EXPECT_EQ(results[0].level, 2);
  EXPECT_EQ(results[0].samples, 1);
  EXPECT_EQ(results[0].correct, 0);
  one.samples[0].verdict.outcome = Outcome::kPass;
  EXPECT_EQ(results_by_task({&one, 1})[0].correct, 1);
}

TEST(Samples, AreKeptWithWhatTheyEarned) {
  Group one = group();
  fs::path file = fs::path(testing::TempDir()) / "tritonrl_sample_test.jsonl";
  save_samples(file, {&one, 1}, 1);
  std::vector<Json> lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], (Json{{"task_id", "t"},
                            {"sample_index", 0},
                            {"text", "text 0"},
                            {"tokens", {1, 2}},
                            {"log_probs", {-0.5, -0.25}},
                            {"finished", true},
                            {"reward", 0.25},
                            {"outcome", "wrong_output"}}));
  EXPECT_TRUE(lines[1]["reward"].is_null());
  EXPECT_EQ(lines[2]["sample_index"], 2);
  save_samples(file, {&one, 1}, 2);
  lines = lines_of(file);
  EXPECT_EQ(lines[0]["return"], 0.75);
  EXPECT_EQ(lines[0]["feedback"], "told");
  EXPECT_EQ(lines[1]["trajectory"], 1);
  EXPECT_TRUE(lines[1]["return"].is_null());
  EXPECT_EQ(lines[2]["turn"], 2);
  EXPECT_EQ(step_name(42), "step_000042");
}

TEST(Records, CarryTrajectoryAndTurnThereAndBack) {
  Rollouts rollouts;
  rollouts.groups = {group()};
  fs::path file = fs::path(testing::TempDir()) / "tritonrl_records_test.jsonl";
  save_records(file, records_of(rollouts));
  std::vector<EvalRecord> records = load_records(file);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].turn, 1);
  EXPECT_EQ(records[1].sample_index, 1);
  EXPECT_EQ(records[1].finished, "length");
  EXPECT_EQ(records[2].turn, 2);
  EXPECT_EQ(records[2].sample_index, 0);
  EXPECT_EQ(records[2].logprob, -0.75);
  std::vector<Json> lines = lines_of(file);
  EXPECT_FALSE(lines[0].contains("turn")) << "files of one turn are what they were";
  EXPECT_TRUE(lines[2].contains("turn"));
}

// Answers of a policy or of anybody else: both can be measured without running them again.
TEST(Records, StoredAnswersAreRecordsOrVerdicts) {
  Rollouts rollouts;
  rollouts.groups = {group()};
  fs::path file = fs::path(testing::TempDir()) / "tritonrl_answers_test.jsonl";
  save_records(file, records_of(rollouts));
  EXPECT_EQ(load_answers(file).size(), 3u);
  EXPECT_EQ(load_answers(file)[1].finished, "length");

  Verdict verdict;
  verdict.task_id = "relu";
  verdict.level = 2;
  verdict.outcome = Outcome::kNoCode;
  verdict.stages = {{Stage::kExtract, 0, Rule::kNoCodeBlock}};
  std::string lines;
  for (const char* id : {"a", "b", "c"}) {
    verdict.candidate_id = id;
    verdict.task_id = *id == 'c' ? "tanh" : "relu";
    lines += json_line(to_json(verdict)) + "\n";
  }
  write_file(file, lines);
  std::vector<EvalRecord> records = load_answers(file);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].task_id, "relu");
  EXPECT_EQ(records[1].level, 2);
  EXPECT_EQ(records[1].sample_index, 1);
  EXPECT_EQ(records[2].sample_index, 0) << "the first one of another task";
  EXPECT_EQ(records[2].finished, "") << "nobody knows how it ended";
  EXPECT_EQ(records[2].verdict.finding().rule(), Rule::kNoCodeBlock);
  write_file(file, lines + "{\"code\": \"x = 1\"}\n");
  try {
    load_answers(file);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("jsonl:4"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("verify --batch"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tritonrl::sample_test
