// SPDX-License-Identifier: Apache-2.0
#include "app/train/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

namespace tritonrl::checkpoints_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CheckpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGXFSZ, SIG_IGN);
    folder_ = fs::path(testing::TempDir()) / "checkpoints_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model");
    write_file(folder_ / "model/config.json", "{\"hidden_size\": 8}");
    write_file(folder_ / "model/model.safetensors", std::string(5000, 'w'));
  }
  RunDir open() { return RunDir::open(folder_ / "run", "a: 1\n", false); }
  fs::path checkpoints() const { return folder_ / "run/checkpoints"; }
  // What is in the folder of checkpoints.
  std::set<std::string> there() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoints())) names.insert(entry.path().filename().string());
    return names;
  }
  void save(Checkpoints& all, const std::string& name, const std::string& text = "weights") {
    all.save(name, folder_ / "model", [&](const fs::path& to) { write_file(to / "adapter_model.safetensors", text); });
  }
  // One RL step whose rollouts, drawn from the checkpoint before, had that mean reward.
  void step(RunDir& run, Checkpoints& all, int64_t step, double reward) {
    ASSERT_TRUE(step == 1 || there().contains(cat("rl_", step - 1)))
        << "step " << step << " has nothing to continue from";
    save(all, cat("rl_", step));
    run.mark_done(cat("rl/step_", step), {{"score", {{"reward", reward}, {"correct_rate", reward / 2}}}});
    all.done(step);
  }
  std::string check_error(const fs::path& folder) {
    try {
      check_checkpoint(folder, folder_ / "model");
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(CheckpointsTest, AllAreKeptUnlessAskedOtherwise) {
  RunDir run = open();
  Checkpoints all({}, run);
  all.resume();
  for (int64_t n = 1; n <= 4; ++n) step(run, all, n, 0.5);
  EXPECT_THAT(there(), UnorderedElementsAre("rl_1", "rl_2", "rl_3", "rl_4"));
  EXPECT_TRUE(all.best().is_null());
}

TEST_F(CheckpointsTest, TheLastOnesTheBestAndTheOneOfSftAreKept) {
  CheckpointConfig config;
  config.keep_last = 1;
  config.keep_best = true;
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  save(all, "sft");
  run.mark_done("sft");
  all.done(0);
  step(run, all, 1, 0.2);  // Drawn from sft.
  EXPECT_EQ(all.best()["name"], "sft");
  step(run, all, 2, 0.7);  // Drawn from rl_1.
  EXPECT_EQ(all.best()["name"], "rl_1");
  step(run, all, 3, 0.6);
  step(run, all, 4, 0.1);
  EXPECT_THAT(there(), UnorderedElementsAre("sft", "rl_1", "rl_4"));
  step(run, all, 5, 0.7);  // As good, and trained for longer: rl_4.
  EXPECT_THAT(there(), UnorderedElementsAre("sft", "rl_4", "rl_5"));
  Json best = read_json(folder_ / "run/state.json")["best_checkpoint"];
  EXPECT_EQ(best, (Json{{"name", "rl_4"}, {"step", 4}, {"reward", 0.7}, {"correct_rate", 0.35}}));
}

// With answers drawn ahead a step's rewards are those of the checkpoint before the last.
TEST_F(CheckpointsTest, TheBestIsTheOneThatDrewTheAnswersAndStaysUntilTheyAreScored) {
  CheckpointConfig config;
  config.keep_last = 1;
  config.keep_best = true;
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  auto stale_step = [&](int64_t n, double reward) {
    save(all, cat("rl_", n));
    run.mark_done(cat("rl/step_", n), {{"score", {{"of_step", std::max<int64_t>(n - 2, 0)}, {"reward", reward}}},
                                       {"ahead", {{"version", n - 1}}}});
    all.done(n);
  };
  stale_step(1, 0.1);
  stale_step(2, 0.1);
  EXPECT_THAT(there(), UnorderedElementsAre("rl_1", "rl_2")) << "rl_1 has drawn what step 3 will score";
  stale_step(3, 0.5);
  EXPECT_EQ(all.best(), (Json{{"name", "rl_1"}, {"step", 1}, {"reward", 0.5}}));
  stale_step(4, 0.4);
  stale_step(5, 0.4);
  EXPECT_THAT(there(), UnorderedElementsAre("rl_1", "rl_4", "rl_5"));
}

TEST_F(CheckpointsTest, TheBestMayBeChosenByEvaluations) {
  CheckpointConfig config;
  config.keep_last = 1;
  config.keep_best = true;
  config.best_by = BestBy::kHeldout;
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  auto evaluated = [&](const std::string& name, int64_t correct, int64_t scored = 10) {
    run.mark_done("eval/" + name, {{"score", {{"correct", correct}, {"scored", scored}}}});
    all.evaluation_ended();
  };
  save(all, "sft");
  run.mark_done("sft");
  all.done(0);
  evaluated("sft", 2);
  EXPECT_EQ(all.best()["name"], "sft");
  step(run, all, 1, 0.9);
  EXPECT_EQ(all.best()["name"], "sft") << "whatever it earned in training";
  evaluated("rl_1", 6);
  step(run, all, 2, 0.1);
  evaluated("rl_2", 0, 0);
  step(run, all, 3, 0.1);
  evaluated("rl", 5);
  EXPECT_EQ(all.best()["name"], "rl_1");
  EXPECT_EQ(all.best()["heldout_correct_rate"], 0.6);
  EXPECT_THAT(there(), UnorderedElementsAre("sft", "rl_1", "rl_3"));
}

// Killed between the two, the step is done again from the checkpoint before it.
TEST_F(CheckpointsTest, NothingGoesBeforeTheNextStepIsRecorded) {
  CheckpointConfig config;
  config.keep_last = 1;
  {
    RunDir run = open();
    Checkpoints all(config, run);
    all.resume();
    step(run, all, 1, 0);
    step(run, all, 2, 0);
    save(all, "rl_3");
    EXPECT_THAT(there(), UnorderedElementsAre("rl_2", "rl_3"));
  }
  fs::create_directories(checkpoints() / "rl_4.tmp");       // Half a checkpoint,
  fs::create_directories(checkpoints() / "rl_1.gone.tmp");  // and one that was being removed.
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  EXPECT_THAT(there(), UnorderedElementsAre("rl_2", "rl_3"));
  step(run, all, 3, 0);
  EXPECT_THAT(there(), UnorderedElementsAre("rl_3"));
}

TEST_F(CheckpointsTest, AFullDiskLeavesNothingHalfWrittenAndSaysWhichFile) {
  RunDir run = open();
  Checkpoints all({}, run);
  save(all, "rl_1", "old");
  struct rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = {4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  for (const char* name : {"rl_1", "rl_2"}) {
    try {
      save(all, name, std::string(100000, 'x'));
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 3);
      said = e.what();
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(said, HasSubstr("rl_2.tmp/adapter_model.safetensors"));
  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_THAT(said, HasSubstr("hint: free some space"));
  EXPECT_THAT(there(), UnorderedElementsAre("rl_1"));
  EXPECT_EQ(read_file(checkpoints() / "rl_1/adapter_model.safetensors"), "old");
  EXPECT_EQ(check_error(checkpoints() / "rl_1"), "no error");
}

TEST_F(CheckpointsTest, WhatIsNotWholeOrNotOursIsRefused) {
  RunDir run = open();
  Checkpoints all({}, run);
  save(all, "rl_1");
  fs::path folder = checkpoints() / "rl_1", file = folder / "adapter_model.safetensors",
           manifest = folder / "checkpoint.json";
  EXPECT_EQ(check_error(folder), "no error");
  write_file(file, "weight");
  EXPECT_THAT(check_error(folder), HasSubstr("adapter_model.safetensors: is not what was saved: 6 bytes, was 7"));
  write_file(file, "weightz");
  EXPECT_THAT(check_error(folder), HasSubstr("is not what was saved"));
  fs::remove(file);
  EXPECT_THAT(check_error(folder), HasSubstr("is missing"));
  write_file(file, "weights");
  Json json = read_json(manifest), other = json;
  other["format"] = 2;
  other["program"] = "tritonrl 9.9";
  write_file(manifest, other.dump());
  EXPECT_THAT(check_error(folder), testing::AllOf(HasSubstr("format 2"), HasSubstr("tritonrl 9.9")));
  other = json;
  other.erase("base");
  write_file(manifest, other.dump());
  EXPECT_THAT(check_error(folder), HasSubstr("lacks a field"));
  write_file(manifest, json.dump());
  EXPECT_EQ(check_error(folder), "no error");
  write_file(folder_ / "model/model.safetensors", std::string(4999, 'w') + "v");  // Same shapes, other weights.
  EXPECT_THAT(check_error(folder), HasSubstr("another base model"));
  fs::remove(manifest);  // An adapter from elsewhere says nothing about itself.
  EXPECT_EQ(check_error(folder), "no error");
}

TEST_F(CheckpointsTest, TheCommandSeesEachCheckpointOnceAndHoldsItUntilThen) {
  CheckpointConfig config;
  config.keep_last = 1;
  config.after_save =
      "test -e \"$TRITONRL_CHECKPOINT/checkpoint.json\" || exit 9; sleep 0.2; "
      "echo $TRITONRL_STEP $(basename $TRITONRL_CHECKPOINT) $(basename $TRITONRL_RUN); exit $((TRITONRL_STEP == 2))";
  {
    RunDir run = open();
    Checkpoints all(config, run);
    all.resume();
    for (int64_t n = 1; n <= 3; ++n) step(run, all, n, 0);
    EXPECT_THAT(there(), UnorderedElementsAre("rl_1", "rl_2", "rl_3"));  // None of the three has been through.
    all.finish();
    EXPECT_THAT(there(), UnorderedElementsAre("rl_3"));
  }
  EXPECT_EQ(read_file(folder_ / "run/after_save.log"), "1 rl_1 run\n2 rl_2 run\n3 rl_3 run\n");
  std::vector<int> codes;
  for_each_json_line(folder_ / "run/after_save.jsonl",
                     [&](int64_t, const Json& line) { codes.push_back(line.at("exit_code")); });
  EXPECT_THAT(codes, ElementsAre(0, 1, 0));
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  all.finish();
  EXPECT_EQ(read_file(folder_ / "run/after_save.log").size(), 33u);  // Not again.
}

TEST_F(CheckpointsTest, ACommandThatWasCutShortRunsAgainAndItsCheckpointIsStillThere) {
  CheckpointConfig config;
  config.keep_last = 1;
  config.after_save = "echo begin $TRITONRL_STEP; test -e " + (folder_ / "go").string() + " || sleep 60; echo end";
  {
    RunDir run = open();
    Checkpoints all(config, run);
    all.resume();
    step(run, all, 1, 0);
    step(run, all, 2, 0);
    for (int i = 0; i < 400 && !fs::exists(folder_ / "run/after_save.log"); ++i) ::usleep(10000);
  }  // Ends it, after a few seconds.
  write_file(folder_ / "go", "");
  RunDir run = open();
  Checkpoints all(config, run);
  all.resume();
  EXPECT_THAT(there(), UnorderedElementsAre("rl_1", "rl_2"));
  all.finish();
  EXPECT_EQ(read_file(folder_ / "run/after_save.log"), "begin 1\nbegin 1\nend\nbegin 2\nend\n");
  EXPECT_THAT(there(), UnorderedElementsAre("rl_2"));
}

}  // namespace
}  // namespace tritonrl::checkpoints_test
