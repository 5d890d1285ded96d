// SPDX-License-Identifier: Apache-2.0
#include "eval/training_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/json_fields.h"
#include "eval/tables.h"
#include "support/made_up_run.h"

namespace tritonrl::training_set_test {
namespace {

using namespace made_up;  // NOLINT(google-build-using-namespace)

using testing::HasSubstr;
using testing::Not;

TrainingSet compared() {
  TrainingSet set;
  set.benchmark = ExcludedBenchmark{"sets/bench.jsonl", "0123456789abcdef", 3, 2, 0, {"a", "b", "c"}};
  set.compared = 40;
  set.left_out = 7;
  set.operators = {"add", "relu", "softmax"};
  return set;
}

TEST(TrainingSet, KnowsWhichTasksItWasComparedWith) {
  TrainingSet set = compared();
  EXPECT_TRUE(set.compared_with({"c", "a"}));
  EXPECT_FALSE(set.compared_with({"a", "d"})) << "one of another benchmark, or of another version";
  set.start = "runs/other/checkpoints/sft";
  EXPECT_FALSE(set.compared_with({"a"})) << "what that one learned is not known";
  EXPECT_THAT(set.words(), HasSubstr("The model it began with was not compared with it: runs/other"));
  set = compared();
  set.benchmark.reset();
  EXPECT_FALSE(set.compared_with({"a"}));
  EXPECT_THAT(set.words(), HasSubstr("not compared with any benchmark"));
}

TEST(TrainingSet, SaysItInWords) {
  TrainingSet set = compared();
  EXPECT_EQ(set.words(),
            "No training task of level 2 or above has the graph of a task of bench.jsonl: 40 compared with 2 graphs of "
            "its 3 tasks (SHA-256 0123456789ab), 7 draws left out.");
  set.not_comparable = 2;
  set.benchmark->unknown = 1;
  EXPECT_THAT(set.words(), HasSubstr("Not comparable: 2 training tasks, 1 of the benchmark's."));
}

TEST(TrainingSet, IsAFileOfARun) {
  auto run = std::filesystem::path(testing::TempDir()) / "tritonrl_training_set_test";
  std::filesystem::create_directories(run);
  EXPECT_FALSE(load_training_set(run / "none"));
  TrainingSet set = compared();
  write_file(run / kTrainingSetFile, json_of(set).dump());
  EXPECT_EQ(json_of(load_training_set(run).value()), json_of(set));
  set.benchmark.reset();
  write_file(run / kTrainingSetFile, json_of(set).dump());
  EXPECT_FALSE(load_training_set(run)->benchmark);
  write_file(run / kTrainingSetFile, "{\"compared\": \"many\"}");
  EXPECT_THROW(load_training_set(run), Error);
  std::filesystem::remove_all(run);
}

TEST(TrainingSet, SplitsLevelOneByWhatWasTaught) {
  std::vector<EvalRecord> records;
  add_task(records, "relu", 1, 4, 3);
  add_task(records, "both", 1, 4, 2);
  add_task(records, "scan", 1, 4, 1);
  add_task(records, "mixed", 1, 2, 0);
  add_task(records, "silent", 1, 1, 1);
  add_task(records, "fusion", 2, 4, 4);
  TaskOperators recorded = {{"relu", {"relu"}},   {"both", {"add", "softmax"}},
                            {"scan", {"cumsum"}}, {"mixed", {"relu", "cumsum"}},
                            {"silent", {}},       {"fusion", {"cumsum"}}};
  ResultsRow row = make_row("sft", records);
  EXPECT_EQ(teaching_table(row), "");
  split_by_teaching(compared(), recorded, records, &row);
  EXPECT_EQ(row.teaching.at(kTaught).tasks, 2);
  EXPECT_EQ(row.teaching.at(kTaught).correct, (Rate{5, 8}));
  EXPECT_EQ(row.teaching.at(kNeverSeen).tasks, 2) << "one operator that nobody taught is enough";
  EXPECT_EQ(row.teaching.at(kNeverSeen).correct, (Rate{1, 6})) << "level 2 does not count";
  EXPECT_EQ(row.teaching.at(kTeachingUnknown).correct, (Rate{1, 1}));
  std::string table = teaching_table(row);
  EXPECT_THAT(table, HasSubstr("taught                    2        8    62.5 % (31-86)"));
  EXPECT_THAT(table, HasSubstr("never seen                2        6"));
  EXPECT_THAT(all_tables(row), HasSubstr("\n\noperators of level 1"));
  row.compared_with_training = false;
  Json json = to_json(row);
  EXPECT_EQ(json.at("compared_with_training"), false);
  EXPECT_EQ(to_json(results_row_from_json(Json::parse(json.dump()), "results.json")), json);
  EXPECT_FALSE(to_json(make_row("sft", records)).contains("compared_with_training"));
  EXPECT_FALSE(to_json(make_row("sft", records)).contains("teaching"));

  TrainingSet partly = compared();
  partly.operators_unknown = 3;  // Training tasks that may have had any operator.
  split_by_teaching(partly, recorded, records, &row);
  EXPECT_EQ(row.teaching.at(kTaught).tasks, 2);
  EXPECT_FALSE(row.teaching.contains(kNeverSeen));
  EXPECT_EQ(row.teaching.at(kTeachingUnknown).tasks, 3);
}

}  // namespace
}  // namespace tritonrl::training_set_test
