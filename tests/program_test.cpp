// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit codes, and a whole (tiny) training run that is interrupted in every phase.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/run_program.h"
#include "support/training_records.h"

namespace tritonrl::program_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kSource = source_dir();

TEST(Program, ExitCodesSayWhoseFaultItIs) {
  std::string task = kSource + "/tests/cases/tasks/softmax.py";
  EXPECT_EQ(run({"verify", kSource + "/tests/cases/honest/softmax_row.py", "--task", task}).code, 0);
  Ended wrong = run({"verify", kSource + "/tests/cases/honest/swish_basic.py", "--task", task});
  EXPECT_EQ(wrong.code, 1) << wrong.said;
  EXPECT_EQ(run({"verify", "no_such_file.py", "--task", task}).code, 2);
}

TEST(Program, UnknownCommandsNameTheNearest) {
  Ended typo = run({"verfy", "a.py"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.said, HasSubstr("unknown command 'tritonrl verfy'"));
  EXPECT_THAT(typo.said, HasSubstr("did you mean 'tritonrl verify'?"));
  EXPECT_THAT(run({"-v", "data", "shwo"}).said, HasSubstr("did you mean 'tritonrl data show'?"));
  EXPECT_THAT(run({"zzzzzzzzzz"}).said, HasSubstr("commands: doctor, data"));
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"--help"}).code, 0);
}

TEST(Program, ThreadsThatComputeWaitPassivelyUnlessToldOtherwise) {
  auto spins = [](const char* name, const char* value) {
    for (const char* one : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) ::unsetenv(one);
    if (name) ::setenv(name, value, 1);
    std::string said = run({"-v", "train", "configs/quickstart.yaml", "--dry-run"}).said;
    if (name) ::unsetenv(name);
    size_t at = said.find("GOMP_SPINCOUNT is ");
    return at == std::string::npos ? "" : said.substr(at, said.find('\n', at) - at);
  };
  EXPECT_EQ(spins(nullptr, nullptr), "GOMP_SPINCOUNT is 5000");
  EXPECT_EQ(spins("GOMP_SPINCOUNT", "7"), "GOMP_SPINCOUNT is 7");
  EXPECT_EQ(spins("OMP_WAIT_POLICY", "active"), "");
}

TEST(Program, ATaskWhoseReferenceFailsIsTheUsersToMend) {
  fs::path folder = fs::path(testing::TempDir()) / "tritonrl_program_test_task";
  fs::create_directories(folder);
  std::string source = read_file(kSource + "/tests/cases/tasks/softmax.py");
  std::string broken = replace_all(source, "return", "raise ValueError('four is not five'); return");
  ASSERT_NE(broken, source);
  write_file(folder / "broken.py", broken);
  Ended ended = run(
      {"verify", kSource + "/tests/cases/honest/softmax_row.py", "--task", (folder / "broken.py").string(), "--json"});
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("the task's own reference fails"));
  EXPECT_THAT(ended.said, HasSubstr("four is not five"));
  EXPECT_EQ(ended.said.find("harness_fault"), std::string::npos);
  fs::remove_all(folder);
}

// Nothing is drawn, verified or loaded: no model, no GPU, no sandbox.
TEST(Program, StoredAnswersAreMeasuredWithoutRunningThem) {
  fs::path folder = fs::path(testing::TempDir()) / "tritonrl_program_test_eval";
  fs::create_directories(folder);
  auto line = [](const char* id, const char* task, int level, const char* outcome, const Json& speedup) {
    bool pass = std::string(outcome) == "pass";
    Json stages = {{{"stage", "extract"}, {"seconds", 0}, {"outcome", "pass"}}};
    Json last = {{"stage", pass ? "time" : "syntax"}, {"seconds", 0}, {"outcome", outcome}};
    if (!pass) last["finding"] = {{"rule", "not_python"}};
    stages.push_back(last);
    return Json{{"id", id},
                {"task", task},
                {"level", level},
                {"outcome", outcome},
                {"stopped_at", last["stage"]},
                {"path", pass ? "replay" : "none"},
                {"speedup", speedup},
                {"timing", nullptr},
                {"triton_share", nullptr},
                {"delegated_ops", Json::array()},
                {"triton_compile_s", nullptr},
                {"triton_launches", 1},
                {"sandbox_missing", Json::array()},
                {"code", "x"},
                {"stages", stages}};
  };
  std::string verdicts;
  for (const Json& one : {line("a", "swish", 1, "pass", 1.5), line("b", "swish", 1, "syntax_error", nullptr),
                          line("c", "sum", 2, "pass", 0.5), line("d", "sum", 2, "syntax_error", nullptr)}) {
    verdicts += json_line(one) + "\n";
  }
  std::string from = (folder / "verdicts.jsonl").string(), tasks = (folder / "tasks.jsonl").string();
  write_file(from, verdicts);
  Json swish = {{"id", "swish"}, {"level", 1}, {"source", read_file(kSource + "/tests/cases/tasks/swish.py")}};
  write_file(tasks, json_line(swish) + "\n");
  Ended json = run({"eval", "--from", from, "--tasks", tasks, "--json", "--name", "theirs"});
  ASSERT_EQ(json.code, 0) << json.said;
  EXPECT_THAT(json.said, HasSubstr("2 of 4 answers are to tasks that"));
  Json row = Json::parse(json.said.substr(json.said.find("{\n")));
  EXPECT_EQ(row["model"], "theirs");
  EXPECT_EQ(row["levels"]["all"]["correct"]["k"], 2);
  EXPECT_EQ(row["levels"]["all"]["pass_at"][0]["value"], 0.5);
  EXPECT_EQ(row["levels"]["all"]["fast"][1]["rate"]["k"], 1);
  EXPECT_EQ(row["levels"]["all"]["rules"]["not_python"], 2);
  EXPECT_EQ(row["operators"]["sigmoid"]["correct"]["n"], 2);
  std::string peer = (folder / "compile.json").string();
  auto time = [](double ratio) {
    return Json{{"source", std::string(64, '0')}, {"ratio", ratio}, {"low", ratio}, {"high", ratio}};
  };
  write_file(peer, Json{{"peer", "torch.compile"}, {"tasks", {{"sum", time(0.25)}}}}.dump());
  Ended beside = run({"eval", "--from", from, "--tasks", tasks, "--json", "--peer", peer});
  ASSERT_EQ(beside.code, 0) << beside.said;
  row = Json::parse(beside.said.substr(beside.said.find("{\n")));
  EXPECT_EQ(row["levels"]["all"]["peer"]["fast"][2]["rate"], row["levels"]["2"]["peer"]["fast"][2]["rate"]);
  EXPECT_EQ(row["levels"]["2"]["peer"]["faster"]["k"], 1);
  EXPECT_FALSE(row["levels"]["1"].contains("peer"));
  write_file(peer, Json{{"peer", "torch.compile"}, {"tasks", {{"swish", time(0.25)}}}}.dump());
  Ended other = run({"eval", "--from", from, "--tasks", tasks, "--peer", peer});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.said, HasSubstr("was timed on another source of task 'swish'"));
  Ended tables = run({"eval", "--from", from});
  ASSERT_EQ(tables.code, 0) << tables.said;
  for (const char* part : {"level 2", "pass@1", "got through", "fast_1.2", "not_python"}) {
    EXPECT_THAT(tables.said, HasSubstr(part));
  }
  EXPECT_EQ(run({"eval", "--from", from, "--out", (folder / "out.jsonl").string()}).code, 2);
  EXPECT_EQ(run({"eval", "--from", (folder / "none.jsonl").string()}).code, 2);
  EXPECT_EQ(run({"eval", "--from", tasks}).code, 2);
  fs::remove_all(folder);
}

TEST(Program, ARunThatCannotBeginLeavesNothingBehind) {
  fs::path folder = fs::path(testing::TempDir()) / "tritonrl_program_test_none";
  fs::remove_all(folder);
  auto train = [&](std::vector<std::string> sets) {
    std::vector<std::string> words = {"train", kSource + "/configs/quickstart.yaml"};
    sets.push_back("run.folder=" + folder.string());
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    Ended ended = run(words);
    EXPECT_FALSE(fs::exists(folder)) << ended.said;
    return ended;
  };
  Ended no_model = train({"policy.model=/nowhere"});
  EXPECT_EQ(no_model.code, 2) << no_model.said;
  EXPECT_THAT(no_model.said, HasSubstr("/nowhere: no such model folder"));
  EXPECT_THAT(train({"policy.model=" + kSource + "/tests"}).said, HasSubstr("config.json"));
  Ended none = run({"train"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.said, HasSubstr("configs/quickstart.yaml"));
  EXPECT_EQ(run({"train", "--explain"}).code, 0);
  Ended dapo = run({"train", "--explain", "dapo"}), best_of_n = run({"train", "--explain", "best_of_n"});
  EXPECT_EQ(dapo.code, 0);
  EXPECT_THAT(dapo.said, HasSubstr("clip_high: 0.28"));
  EXPECT_THAT(dapo.said, testing::Not(HasSubstr("best_of_n:")));
  EXPECT_THAT(best_of_n.said, testing::Not(HasSubstr("clip_high")));
  if (!fs::exists(kSource + "/models/smollm2-135m-instruct/config.json")) return;
  std::string model = "policy.model=" + kSource + "/models/smollm2-135m-instruct";
  EXPECT_THAT(train({model, "data.prompt=no_such.txt"}).said, HasSubstr("no_such.txt"));
  EXPECT_THAT(train({model, "eval.tasks=no_such.jsonl"}).said, HasSubstr("no_such.jsonl"));
  Ended no_gpu = train({model, "policy.device=cuda:99"});
  EXPECT_EQ(no_gpu.code, 3) << no_gpu.said;
  EXPECT_THAT(no_gpu.said, HasSubstr("cuda:99"));
  EXPECT_THAT(no_gpu.said, HasSubstr("hint: "));
  EXPECT_EQ(train({model, "verify.gpus=99"}).code, 3);
  Ended no_folder = run(
      {"train", kSource + "/configs/quickstart.yaml", "--set", model, "--set", "run.folder=" + kSource + "/README.md"});
  EXPECT_EQ(no_folder.code, 3) << no_folder.said;
  EXPECT_THAT(no_folder.said, HasSubstr("a file is in its place"));
}

class Training : public testing::Test {
 protected:
  void SetUp() override {
    model_ = kSource + "/models/smollm2-135m-instruct";
    if (!fs::exists(model_ + "/config.json")) GTEST_SKIP() << model_ << " is missing: ./test.sh imports it";
    folder_ = fs::path(testing::TempDir()) / "tritonrl_program_test";
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> tiny() const {
    std::vector<std::string> words;
    const std::string sets[] = {"policy.model=" + model_,
                                "policy.device=cpu",
                                "data.split.train_level1=4",
                                "data.split.train_level2=2",
                                "data.split.rl_level1=1",
                                "data.split.rl_level2=1",
                                "data.split.heldout_level1=1",
                                "data.split.heldout_level2=1",
                                "sft.epochs=1",
                                "sft.batch_size=2",
                                "eval.samples=2",
                                "eval.sampling.max_new_tokens=12",
                                "rl.steps=1",
                                "rl.tasks_per_step=2",
                                "rl.samples=2",
                                "rl.sampling.max_new_tokens=12"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  }
  std::vector<std::string> command(const std::string& name, const std::string& algorithm = "best_of_n") const {
    std::vector<std::string> words = {"train", kSource + "/configs/quickstart.yaml", "--set", "run.name=" + name,
                                      "--set", "run.folder=" + folder_.string()};
    words.insert(words.end(), {"--set", "rl.algorithm=" + algorithm});
    if (algorithm == "best_of_n") words.insert(words.end(), {"--set", "rl.best_of_n.keep=1"});
    auto rest = tiny();
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
  }
  Json results(const std::string& name) const { return Json::parse(read_file(folder_ / name / "results.json")); }

  std::string model_;
  fs::path folder_;
};

TEST_F(Training, TasksThatNobodyCanSampleFromEndTheRunBeforeItTrains) {
  auto words = command("level2");
  words.insert(words.end(), {"--set", "data.split.rl_level1=0"});
  Ended ended = run(words);
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("there are no tasks of level 1 to sample"));
  EXPECT_FALSE(fs::exists(folder_ / "level2/checkpoints/sft"));
  words.insert(words.end(), {"--set", "run.name=fitting", "--set", "data.sampler.fixed_mix.level2_share=1"});
  Ended fitting = run(words);
  EXPECT_EQ(fitting.code, 0) << fitting.said;
}

// Optimizer, baseline, sampler and policy all continue bit by bit.
TEST_F(Training, KilledAnywhereAPolicyGradientRunEndsWithTheSameBits) {
  const std::string sets[] = {
      "rl.steps=2",     "rl.advantage.baseline=moving", "rl.overlong=penalty", "rl.overlong_tokens=8",
      "rl.loss.kl=0.1", "rl.loss.entropy=0.01",         "run.seed=3"};
  auto policy_gradient = [&](const std::string& name) {
    auto words = command(name, "reinforce");
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  };
  Ended whole = run(policy_gradient("whole"));
  ASSERT_EQ(whole.code, 0) << whole.said;
  for (const char* moment : {"rl/step_1: sampling", "rl 1: ", "rl/step_2: sampling"}) {
    Ended killed = run(policy_gradient("killed"), moment, SIGKILL);
    EXPECT_EQ(killed.code, 128 + SIGKILL) << moment << ": " << killed.said;
  }
  Ended last = run(policy_gradient("killed"));
  ASSERT_EQ(last.code, 0) << last.said;
  EXPECT_EQ(steps_of(folder_ / "killed"), steps_of(folder_ / "whole"));
  EXPECT_EQ(results("killed")["rows"], results("whole")["rows"]);
  for (const char* file : {"rollouts/step_000001.jsonl", "rollouts/step_000002.jsonl"}) {
    EXPECT_EQ(read_file(folder_ / "killed" / file), read_file(folder_ / "whole" / file)) << file;
  }
  for (const char* file : {"adapter_model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(read_file(folder_ / "killed/checkpoints/rl_2" / file) ==
                read_file(folder_ / "whole/checkpoints/rl_2" / file))
        << file;
  }
}

std::vector<Json> rollouts_of(const fs::path& file) {
  std::vector<Json> lines;
  for_each_json_line(file, [&](int64_t, const Json& line) { lines.push_back(line); });
  return lines;
}

// Two turns: each answer but the first follows the verdict on the one before, killed or not.
TEST_F(Training, ConversationsGoOnWithTheSameBitsAndBeginAsSingleAnswersDo) {
  auto talk = [&](const std::string& name, const std::string& turns) {
    auto words = command(name, "rloo");
    const std::string sets[] = {
        "sft.enabled=false",      "rl.steps=2",        "rl.overlong=penalty", "rl.overlong_tokens=8",
        "verify.seed=4294967311", "rl.turns=" + turns, "eval.turns=" + turns};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  };
  Ended whole = run(talk("whole", "2"));
  ASSERT_EQ(whole.code, 0) << whole.said;
  for (const char* moment : {"rl/step_1: turn 2: sampling", "rl/step_2: turn 2: verifying"}) {
    Ended killed = run(talk("killed", "2"), moment, SIGKILL);
    EXPECT_EQ(killed.code, 128 + SIGKILL) << moment << ": " << killed.said;
  }
  Ended last = run(talk("killed", "2"));
  ASSERT_EQ(last.code, 0) << last.said;
  EXPECT_EQ(steps_of(folder_ / "killed"), steps_of(folder_ / "whole"));
  EXPECT_EQ(results("killed")["rows"], results("whole")["rows"]);
  for (const char* file : {"rollouts/step_000001.jsonl", "rollouts/step_000002.jsonl",
                           "checkpoints/rl_2/adapter_model.safetensors", "checkpoints/rl_2/optimizer.safetensors"}) {
    EXPECT_TRUE(read_file(folder_ / "killed" / file) == read_file(folder_ / "whole" / file)) << file;
  }

  std::vector<Json> turns = rollouts_of(folder_ / "whole/rollouts/step_000001.jsonl"), first;
  for (const Json& line : turns) {
    ASSERT_TRUE(line.contains("trajectory"));
    if (line["turn"] == 2) {
      EXPECT_EQ(line["feedback"], "");
      EXPECT_EQ(line["return"], line["reward"]);
      continue;
    }
    EXPECT_THAT(line["feedback"].get<std::string>(), HasSubstr("There is no code to run"));
    first.push_back(line);
  }
  EXPECT_EQ(turns.size(), 8u);  // Two tasks, two conversations each, two answers each.
  Json results_of_two = results("whole")["rows"][0]["levels"]["all"];
  EXPECT_EQ(results_of_two["correct_within"].size(), 2u);

  Ended single = run(talk("single", "1"));
  ASSERT_EQ(single.code, 0) << single.said;
  std::vector<Json> alone = rollouts_of(folder_ / "single/rollouts/step_000001.jsonl");
  ASSERT_EQ(alone.size(), first.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_FALSE(alone[i].contains("turn"));
    for (const char* field : {"task_id", "text", "tokens", "log_probs", "reward", "outcome"}) {
      EXPECT_EQ(alone[i][field], first[i][field]) << field;
    }
  }
}

TEST_F(Training, StoppedInEveryPhaseItEndsWhereAnUninterruptedRunDoes) {
  Ended whole = run(command("whole"));
  ASSERT_EQ(whole.code, 0) << whole.said;
  Ended early = run(command("stopped"), "run directory: ");  // Before the first solution: none has to be waited for.
  EXPECT_EQ(early.code, 130) << early.said;
  EXPECT_EQ(early.said.find("6/6 solutions"), std::string::npos) << early.said;
  for (const char* phase : {"verifying solutions", "sft: ", "eval/sft: sampling", "rl/step_1: sampling"}) {
    Ended stopped = run(command("stopped"), phase);
    EXPECT_EQ(stopped.code, 130) << phase << ": " << stopped.said;
    EXPECT_THAT(stopped.said, HasSubstr("the same command continues where this one ended"));
  }
  Ended last = run(command("stopped"));
  ASSERT_EQ(last.code, 0) << last.said;
  EXPECT_EQ(results("stopped")["rows"], results("whole")["rows"]);
  Json adapter = read_json(folder_ / "stopped/checkpoints/sft/adapter_config.json");
  EXPECT_EQ(adapter["base_model_name_or_path"], fs::canonical(model_).string());  // Where PEFT finds the base.
  for (const char* file : {"report.html", "report.md", "steps.jsonl", "log.txt"}) {
    EXPECT_TRUE(fs::exists(folder_ / "stopped" / file)) << file;
  }
  Ended again = run(command("stopped"));  // Nothing is left to do.
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.said.find("sampling"), std::string::npos);
}

// A benchmark of one fusion: the stream leaves its graph out, files that hold it are refused, evaluations know.
TEST_F(Training, WhatIsExcludedIsProvenInTheRunAndAskedForByEvaluations) {
  fs::create_directories(folder_);
  Json swish = {{"id", "swish"}, {"level", 1}, {"source", read_file(kSource + "/tests/cases/tasks/swish.py")}};
  swish["recorded"] = {{"compute_ops", 1},  {"level", 1},     {"graph", "trace:a"},
                       {"loose_graph", ""}, {"outline", "o"}, {"operators", {"silu"}}};
  Json fusion = {{"id", "fusion"}, {"level", 2}, {"source", read_file(kSource + "/tests/cases/tasks/linear_relu.py")}};
  fusion["recorded"] = swish["recorded"];
  fusion["recorded"]["outline"] = "outline:f";
  std::string bench = (folder_ / "bench.jsonl").string(), other = (folder_ / "other.jsonl").string();
  write_file(bench, json_line(swish) + "\n" + json_line(fusion) + "\n");
  swish["source"] = swish["source"].get<std::string>() + "# Of another version.\n";
  write_file(other, json_line(swish) + "\n");
  auto train = [&](const std::string& name, std::vector<std::string> sets) {
    auto words = command(name);
    sets.insert(sets.end(), {"data.exclude=" + bench, "rl.steps=0", "data.synth.leave_out=[sigmoid]"});
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run(words);
  };
  fusion["id"] = "copied";
  fusion["solution"] = read_file(kSource + "/tests/cases/honest/linear_relu_fused.py");
  std::string mine = (folder_ / "mine.jsonl").string();
  write_file(mine, json_line(fusion) + "\n");
  Ended refused = train("refused", {"data.train.file=" + mine});
  EXPECT_EQ(refused.code, 2) << refused.said;
  EXPECT_THAT(refused.said, HasSubstr("copied ~ fusion"));

  Ended trained = train("proven", {});
  ASSERT_EQ(trained.code, 0) << trained.said;
  EXPECT_THAT(trained.said, HasSubstr("2 compared with 1 graphs of its 2 tasks"));
  Json set = read_json(folder_ / "proven/training_set.json");
  EXPECT_EQ(set["benchmark"]["file"], bench);
  EXPECT_THAT(set["operators"].dump(), testing::AllOf(HasSubstr("\"relu\""), testing::Not(HasSubstr("sigmoid"))));
  EXPECT_THAT(read_file(folder_ / "proven/report.md"), HasSubstr("has the graph of a task of bench.jsonl"));
  EXPECT_THAT(results("proven")["training_set"].get<std::string>(), HasSubstr("2 compared"));

  auto evaluated = [&](const std::string& tasks) {
    std::string out = (folder_ / "answers.jsonl").string();
    Ended ended = run({"eval", "--tasks", tasks, "--adapter", (folder_ / "proven/checkpoints/sft").string(), "--out",
                       out, "--set", "policy.model=" + model_, "--set", "policy.device=cpu", "--set", "eval.samples=1",
                       "--set", "eval.sampling.max_new_tokens=4"});
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_EQ(ended.said.find("not all compared") != std::string::npos, tasks == other) << ended.said;
    return read_json(folder_ / "answers.metrics.json");
  };
  EXPECT_EQ(evaluated(other)["compared_with_training"], false);
  Json metrics = evaluated(bench);
  EXPECT_EQ(metrics["compared_with_training"], true);
  EXPECT_EQ(metrics["teaching"]["taught"]["tasks"], 1) << "silu is of the core operators";
  Ended stored = run({"eval", "--from", (folder_ / "answers.jsonl").string(), "--tasks", bench, "--run",
                      (folder_ / "proven").string()});
  EXPECT_EQ(stored.code, 0) << stored.said;
  EXPECT_THAT(stored.said, HasSubstr("operators of level 1"));
  EXPECT_EQ(run({"eval", "--from", (folder_ / "answers.jsonl").string(), "--run", folder_.string()}).code, 2);
}

// The shipped matrix of all sixteen combinations, with a tiny run in the place of the real one.
TEST_F(Training, EveryCombinationOfExtensionsTrainsAndEvaluates) {
  std::string matrix = read_file(kSource + "/configs/ablate/extensions.yaml");
  matrix = replace_all(matrix, "../gpu.yaml", kSource + "/configs/quickstart.yaml");
  matrix = replace_all(matrix, "corner_seeds: [1, 2, 3]", "corner_seeds: [1]");
  matrix = replace_all(matrix, "folder: runs", "folder: " + folder_.string());
  for (const char* overlay : {"none", "multi_input", "staged", "curriculum", "calibrated"}) {
    std::string file = std::string(overlay) + ".yaml";
    matrix = replace_all(matrix, " " + file, " " + kSource + "/configs/ablate/" + file);
  }
  fs::create_directories(folder_);
  write_file(folder_ / "matrix.yaml", matrix);
  std::vector<std::string> words = {"ablate", (folder_ / "matrix.yaml").string(), "--set", "rl.best_of_n.keep=1"};
  auto rest = tiny();
  words.insert(words.end(), rest.begin(), rest.end());
  Ended ended = run(words);
  ASSERT_EQ(ended.code, 0) << ended.said;
  Json ablation = read_json(folder_ / "extensions/ablation.json");
  ASSERT_EQ(ablation["cells"].size(), 16u);
  for (const Json& cell : ablation["cells"]) {
    EXPECT_EQ(cell["status"], "done") << cell["folder"];
    Json state = read_json(folder_ / "extensions" / cell["folder"].get<std::string>() / "state.json");
    EXPECT_TRUE(state["phases"]["sft"].contains("taken_from")) << cell["folder"];
    EXPECT_TRUE(state["phases"].contains("audit")) << cell["folder"];
  }
  EXPECT_GT(ablation["effects"].size(), 0u);
  EXPECT_THAT(ended.said, HasSubstr("correct on level 1"));
  Ended again = run(words);  // Nothing is left to run.
  EXPECT_EQ(again.code, 0) << again.said;
  EXPECT_THAT(again.said, HasSubstr("16 cells, 0 to run"));
}

}  // namespace
}  // namespace tritonrl::program_test
