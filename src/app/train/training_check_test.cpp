// SPDX-License-Identifier: Apache-2.0
// What a run may train on where a benchmark is excluded, without training.
#include "app/train/training_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/json_fields.h"
#include "base/files/secure_hash.h"

namespace tritonrl::training_check_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Task task(const std::string& id, int level, const std::string& outline, std::vector<std::string> operators = {"add"}) {
  Task t;
  t.id = id;
  t.level = level;
  t.source = "# " + id;
  if (!outline.empty()) t.recorded = {level, level, "trace:" + id, "trace:l" + id, outline, std::move(operators)};
  return t;
}

Exclusion benchmark() {
  Exclusion exclusion;
  exclusion.file = "bench.jsonl";
  exclusion.hash = "beef";
  exclusion.tasks = 2;
  exclusion.outlines = {{"outline:f", "b/2"}};
  exclusion.sources = {"s1", "s2"};
  return exclusion;
}

class TrainingCheck : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "tritonrl_training_check_test";
    fs::create_directories(folder_ / "model");
    config_.policy.model = (folder_ / "model").string();
    config_.data.synth.operators = {"relu", "softmax"};
    config_.rl.steps = 0;
  }
  void TearDown() override { fs::remove_all(folder_); }

  TrainingSet check(const Exclusion& exclusion, Splits splits) const {
    return check_training(config_, exclusion, &splits, []() -> Verifier& { throw std::runtime_error("asked"); });
  }
  std::string error(const Exclusion& exclusion, const Splits& splits) const {
    try {
      check(exclusion, splits);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
  Config config_;
};

TEST_F(TrainingCheck, OfAStreamSaysWhatItComparedAndCouldDraw) {
  Splits splits;
  splits.train = {task("a", 1, ""), task("b", 2, ""), task("c", 2, "")};
  splits.rl = {task("d", 2, "")};
  splits.excluded_draws = 9;
  TrainingSet set = check(benchmark(), splits);
  ASSERT_TRUE(set.benchmark);
  EXPECT_EQ(set.benchmark->sha256, "beef");
  EXPECT_EQ(set.benchmark->graphs, 1);
  EXPECT_THAT(set.benchmark->sources, ElementsAre("s1", "s2"));
  EXPECT_EQ(set.compared, 2) << "nothing is reinforced here";
  EXPECT_EQ(set.left_out, 9);
  EXPECT_THAT(set.operators, ElementsAre("log_softmax", "neg", "relu", "softmax"));
  config_.rl.steps = 3;
  EXPECT_EQ(check(benchmark(), splits).compared, 3);
  TrainingSet open = check({}, splits);
  EXPECT_FALSE(open.benchmark);
  EXPECT_EQ(open.compared, 0);
  EXPECT_EQ(open.operators, set.operators);
}

TEST_F(TrainingCheck, RefusesFilesThatHoldAGraphOfTheBenchmark) {
  config_.data.train.file = "mine.jsonl";
  Splits splits;
  splits.train = {task("single", 1, "outline:f"), task("fine", 2, "outline:g", {"mul", "relu"})};
  TrainingSet set = check(benchmark(), splits);
  EXPECT_EQ(set.compared, 1);
  EXPECT_THAT(set.operators, ElementsAre("add", "mul", "relu"));
  EXPECT_EQ(set.operators_unknown, 0);
  splits.train.push_back(task("leak", 2, "outline:f"));
  EXPECT_THAT(error(benchmark(), splits), AllOf(HasSubstr("1 training tasks have the graph of a task of bench.jsonl"),
                                                HasSubstr("leak ~ b/2"), HasSubstr("data.train: mine.jsonl")));
  EXPECT_EQ(error({}, splits), "no error");
  for (int i = 0; i < 9; ++i) splits.train.push_back(task(cat("leak", i), 3, "outline:f"));
  EXPECT_THAT(error(benchmark(), splits), AllOf(HasSubstr("10 training tasks"), HasSubstr(", ...")));
  config_.sft.enabled = false;
  EXPECT_EQ(error(benchmark(), splits), "no error") << "nobody is taught by them";
  config_.rl.steps = 1;
  config_.data.rl.file = "rl.jsonl";
  splits.rl = {task("leak", 2, "outline:f")};
  EXPECT_THAT(error(benchmark(), splits), HasSubstr("data.rl: rl.jsonl"));
}

TEST_F(TrainingCheck, RecordsFilesOnlyWhereSomethingIsExcluded) {
  config_.data.train.file = "mine.jsonl";
  Splits splits;
  splits.train = {task("fusion", 2, ""), task("single", 1, "")};
  EXPECT_EQ(check({}, splits).operators_unknown, 2);
  EXPECT_THROW(check(benchmark(), splits), std::runtime_error) << "the verifier records what nobody has";
  splits.train[0] = task("fusion", 2, "outline:g");
  TrainingSet set = check(benchmark(), splits);
  EXPECT_EQ(set.operators_unknown, 1);
  EXPECT_EQ(set.compared, 1);
}

TEST_F(TrainingCheck, ATrainedModelToBeginWithMustHaveBeenComparedToo) {
  Splits splits;
  fs::path checkpoint = folder_ / "run/checkpoints/sft";
  fs::create_directories(checkpoint);
  write_file(checkpoint / "checkpoint.json", "{}");
  EXPECT_EQ(check(benchmark(), splits).start, "");
  config_.policy.model = checkpoint.string();
  EXPECT_EQ(check(benchmark(), splits).start, checkpoint.string()) << "a run of before there was such a file";
  TrainingSet before;
  before.operators = {"cumsum"};
  auto with = [&] {
    write_file(folder_ / "run" / kTrainingSetFile, json_of(before).dump());
    return check(benchmark(), splits);
  };
  EXPECT_EQ(with().start, checkpoint.string());
  EXPECT_THAT(with().operators, testing::Contains("cumsum"));
  before.benchmark = ExcludedBenchmark{"bench.jsonl", "other", 2, 1, 0, {}};
  EXPECT_EQ(with().start, checkpoint.string()) << "compared with another one";
  before.benchmark->sha256 = "beef";
  EXPECT_EQ(with().start, "");
  before.start = "elsewhere";
  EXPECT_EQ(with().start, checkpoint.string());
}

TEST_F(TrainingCheck, AnAdapterToBeginWithBringsItsProof) {
  Splits splits;
  const fs::path exported = folder_ / "exported";
  fs::create_directories(exported);
  write_file(exported / "adapter_config.json", "{}");
  config_.policy.adapter = exported.string();
  EXPECT_EQ(check(benchmark(), splits).start, exported.string()) << "nobody knows what it was trained on";
  TrainingSet before;
  before.operators = {"cumsum"};
  before.benchmark = ExcludedBenchmark{"bench.jsonl", "beef", 2, 1, 0, {}};
  write_file(exported / kTrainingSetFile, json_of(before).dump());
  EXPECT_EQ(check(benchmark(), splits).start, "");
  EXPECT_THAT(check(benchmark(), splits).operators, testing::Contains("cumsum"));
  EXPECT_TRUE(training_set_of_checkpoint(exported));
}

TEST_F(TrainingCheck, EvaluationsAskTheRunThatTheirModelLiesIn) {
  TrainingSet set;
  Task known = task("k", 1, "outline:k", {"relu"}), other = task("o", 1, "outline:o", {"cumsum"});
  set.benchmark = ExcludedBenchmark{"bench.jsonl", "beef", 1, 1, 0, {secure_hash(known.source)}};
  set.operators = {"relu"};
  fs::create_directories(folder_ / "run/checkpoints/sft");
  write_file(folder_ / "run" / kTrainingSetFile, json_of(set).dump());
  EXPECT_TRUE(training_set_of_checkpoint(folder_ / "run/checkpoints/sft"));
  EXPECT_TRUE(training_set_of_checkpoint((folder_ / "run/checkpoints/sft/").string()));
  EXPECT_FALSE(training_set_of_checkpoint(folder_ / "run"));
  EXPECT_FALSE(training_set_of_checkpoint(folder_ / "model"));
  EvalRecord right, wrong;
  right.task_id = "k";
  right.verdict.outcome = Outcome::kPass;
  wrong.task_id = "o";
  wrong.verdict.outcome = Outcome::kNoCode;
  ResultsRow row;
  note_training(set, {known}, {right}, &row);
  EXPECT_EQ(row.compared_with_training, true);
  EXPECT_EQ(row.teaching.at(kTaught).correct, (Rate{1, 1}));
  note_training(set, {known, other}, {right, wrong}, &row);
  EXPECT_EQ(row.compared_with_training, false);
  EXPECT_EQ(row.teaching.at(kNeverSeen).correct, (Rate{0, 1}));
}

}  // namespace
}  // namespace tritonrl::training_check_test
