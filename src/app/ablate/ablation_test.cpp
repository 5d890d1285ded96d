// SPDX-License-Identifier: Apache-2.0
// The matrix of an ablation, its cells as processes (a script stands in for `tritonrl train`), and what comes of them.
#include "app/ablate/ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"
#include "rollout/evaluation.h"
#include "support/made_up_finding.h"

namespace tritonrl::ablation_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

class AblationTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / cat("tritonrl_ablation_test_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("base.yaml", "rl: {steps: 2}\neval: {samples: 4}\n");
    write("warm.yaml", "rl: {sampling: {temperature: 0.9}}\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  fs::path matrix(const std::string& axes, const std::string& more = "") {
    return write("matrix.yaml",
                 cat("name: m\nfolder: ", (folder_ / "runs").string(), "\nbase: [base.yaml]\n", more, "axes:\n", axes));
  }
  std::string refusal(const fs::path& file) {
    try {
      load_ablation(file, {});
    } catch (const Error& error) {
      return cat(error.what());
    }
    return "";
  }

  fs::path folder_;
};

constexpr const char* kAxes =
    "  heat: [cold, warm = warm.yaml]\n  n: [\"10\", \"5 = rl.samples=5, rl.best_of_n.keep=2\"]\n";

TEST_F(AblationTest, CellsAreTheProductOfAxesAndSeeds) {
  Ablation ablation = load_ablation(matrix(kAxes, "seeds: [1]\ncorner_seeds: [1, 2]\n"), {"rl.steps=1"});
  ASSERT_THAT(ablation.cells, SizeIs(6));  // Four settings, two of them twice.
  std::set<std::string> names;
  for (const AblationCell& cell : ablation.cells) names.insert(cell.name);
  EXPECT_EQ(names.size(), 6u);
  EXPECT_TRUE(names.count("heat-cold_n-10_seed-2"));
  EXPECT_TRUE(names.count("heat-warm_n-5_seed-2"));
  EXPECT_FALSE(names.count("heat-warm_n-10_seed-2"));
  for (const AblationCell& cell : ablation.cells) {
    EXPECT_EQ(cell.files.size(), cell.setting.at("heat") == "warm" ? 2u : 1u);
    EXPECT_EQ(std::count(cell.sets.begin(), cell.sets.end(), "rl.samples=5"), cell.setting.at("n") == "5");
    EXPECT_EQ(std::count(cell.sets.begin(), cell.sets.end(), "rl.steps=1"), 1);
    EXPECT_EQ(std::count(cell.sets.begin(), cell.sets.end(), "eval.verifier=full"), 1);
    EXPECT_THAT(cell.sets.back(), HasSubstr("run.start_from="));  // Neither axis changes the beginning.
  }
}

TEST_F(AblationTest, CellsThatBeginOtherwiseShareNothing) {
  Ablation ablation = load_ablation(matrix("  rank: [\"16\", \"4 = lora.rank=4\"]\n"), {});
  for (const AblationCell& cell : ablation.cells) {
    bool shares = cell.sets.back().rfind("run.start_from=", 0) == 0;
    EXPECT_EQ(shares, cell.setting.at("rank") == "16") << cell.name;
  }
}

TEST_F(AblationTest, WhatCannotBeIsRefused) {
  EXPECT_THAT(refusal(matrix("  a: [x, y = rl.samples=3]\n  b: [x, \"y = rl.samples=4\"]\n")),
              HasSubstr("axes a and b both set rl.samples"));
  EXPECT_THAT(refusal(matrix("  a: [x, y = rl.sampling.temperature=1]\n  b: [x, y = warm.yaml]\n")),
              HasSubstr("both set rl.sampling.temperature"));
  EXPECT_THAT(refusal(matrix("  a: [x, y = rl.sample=3]\n")), HasSubstr("rl.sample"));
  EXPECT_THAT(refusal(matrix("  a: [x, y = timing.type=guess]\n")), HasSubstr("guess"));
  EXPECT_THAT(refusal(matrix("  a: [x, y]\n")), HasSubstr("y changes nothing"));
  EXPECT_THAT(refusal(matrix("  a: [x]\n")), HasSubstr("two values"));
  EXPECT_THAT(refusal(matrix("  a: [x, y = nowhere.yaml]\n")), HasSubstr("no such config file"));
  EXPECT_THAT(refusal(matrix("  a: [x/z, y = rl.samples=3]\n")), HasSubstr("a value's name"));
  EXPECT_THAT(refusal(write("none.yaml", "name: m\n")), HasSubstr("no axes"));
  EXPECT_THAT(refusal(matrix(kAxes, "seed: [1]\n")), HasSubstr("seed"));
}

// Stands in for the program: writes what a cell leaves. Counts its starts in CELL.starts; fails in cells whose name
// holds $FAIL.
constexpr const char* kProgram = R"(#!/bin/sh
for word in "$@"; do
  case "$word" in
    run.folder=*) folder=$(echo "${word#*=}" | tr -d '"') ;;
    run.name=*) name=$(echo "${word#*=}" | tr -d '"') ;;
  esac
done
cell="$folder/$name"
mkdir -p "$cell/rollouts"
echo start >>"$cell.starts"
case "$name" in *"${FAIL:-nothing fails}"*) exit 3 ;; esac
cp "$RECORDS" "$cell/rollouts/eval_rl.jsonl"
cp "$START" "$cell/rollouts/eval_sft.jsonl"
echo '{"phase":"rl","time/phase/verify":6.0,"rollouts":4}' >"$cell/steps.jsonl"
for step in 0 0 8; do echo "{\"phase\":\"eval\",\"step\":$step,\"level2/correct_rate\":0.2${n:=1}}"; n=2; done >>"$cell/steps.jsonl"
echo '{"phases":{"audit":{"accepted":8,"rejected":2}}}' >"$cell/state.json"
echo '{}' >"$cell/results.json"
)";

TEST_F(AblationTest, CellsRunSurviveAndGoOn) {
  std::vector<EvalRecord> records;
  for (int i = 0; i < 4; ++i) {
    EvalRecord record;
    record.task_id = "t";
    record.level = 2;
    record.sample_index = i;
    record.verdict.task_id = "t";
    record.verdict.level = 2;
    made_up_end(record.verdict, Stage::kFullRun, i < 3 ? Outcome::kPass : Outcome::kWrongOutput);
    if (i < 2) record.verdict.speedup = 2;
    records.push_back(record);
  }
  save_records(folder_ / "records.jsonl", records);
  for (EvalRecord& record : records) made_up_end(record.verdict, Stage::kFullRun, Outcome::kWrongOutput);
  made_up_end(records[0].verdict, Stage::kFullRun, Outcome::kPass);
  save_records(folder_ / "start.jsonl", records);
  ::setenv("START", (folder_ / "start.jsonl").c_str(), 1);
  fs::path program = write("program.sh", kProgram);
  fs::permissions(program, fs::perms::owner_all);
  ::setenv("RECORDS", (folder_ / "records.jsonl").c_str(), 1);
  ::setenv("FAIL", "heat-warm_n-5", 1);
  Ablation ablation = load_ablation(matrix(kAxes), {});
  run_cells(ablation, {program, 2, ""});
  auto results = collect(ablation);
  ASSERT_THAT(results, SizeIs(4));
  for (const CellResult& result : results) {
    bool fails = result.cell->name == "heat-warm_n-5_seed-1";
    EXPECT_EQ(result.status, fails ? "failed" : "done") << result.cell->name;
    if (fails) continue;
    EXPECT_DOUBLE_EQ(result.measures.at("correct_2").at("t"), 0.75);
    EXPECT_DOUBLE_EQ(result.measures.at("log_speedup").at("t"), std::log(2.0));
    EXPECT_DOUBLE_EQ(result.measures.at("verify_seconds").at(""), 1.5);
    EXPECT_DOUBLE_EQ(result.measures.at("false_accepts").at(""), 0.25);
    ASSERT_THAT(result.gains, SizeIs(2));  // Level 2 and all.
    EXPECT_EQ(result.gains[0].a + " " + result.gains[0].level, "sft 2");
    EXPECT_DOUBLE_EQ(result.gains[0].difference, 0.5);
    EXPECT_THAT(result.heldout, ElementsAre(Pair("2", ElementsAre(Pair(0, 0.22), Pair(8, 0.22)))));
  }
  // A second start runs what is left, and only that.
  ::unsetenv("FAIL");
  run_cells(ablation, {program, 1, ""});
  results = collect(ablation);
  for (const CellResult& result : results) {
    bool failed_once = result.cell->name == "heat-warm_n-5_seed-1";
    EXPECT_EQ(result.status, "done");
    EXPECT_EQ(split(trim(read_file(result.cell->folder.string() + ".starts")), '\n').size(), failed_once ? 2u : 1u);
  }
  auto effects = effects_of(ablation, results);
  ASSERT_THAT(effects, SizeIs(12));  // Two main effects and an interaction of four measures.
  for (const MeasuredEffect& one : effects) {
    EXPECT_DOUBLE_EQ(one.effect.difference, 0) << one.sentence;
    bool alone = one.effect.blocks == 1;
    EXPECT_THAT(one.sentence, HasSubstr(alone ? "too little to tell chance from" : "no measurable effect"));
  }
  write_ablation(ablation, results, effects);
  Json json = Json::parse(read_file(ablation.folder / "ablation.json"));
  EXPECT_EQ(json["cells"].size(), 4u);
  EXPECT_EQ(json["effects"].size(), 12u);
  EXPECT_THAT(read_file(ablation.folder / "ablation.md"), HasSubstr("heat warm x n 5"));
  EXPECT_THAT(read_file(ablation.folder / "ablation.md"), HasSubstr("+50.0 (+50.0 to +50.0)"));
  EXPECT_EQ(json["cells"][0]["gains"][0]["level"], "2");
  EXPECT_EQ(json["cells"][0]["heldout"]["2"][1]["step"], 8);
  EXPECT_THAT(read_file(ablation.folder / "ablation.html"), HasSubstr("<svg"));
}

}  // namespace
}  // namespace tritonrl::ablation_test
