// SPDX-License-Identifier: Apache-2.0
// A training run that is killed, told to stop, runs into a full disk or into numbers that are none: what is left of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "base/files/json.h"
#include "base/files/line_file.h"
#include "base/process/build_paths.h"
#include "base/rng.h"
#include "base/text.h"
#include "support/run_program.h"
#include "support/tiny_model.h"
#include "support/training_records.h"

namespace tritonrl::safety_test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class Safety : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "tritonrl_safety_test";
    fs::remove_all(folder_);
    write_tiny_model(folder_ / "model");
  }
  void TearDown() override {
    if (!HasFailure()) fs::remove_all(folder_);
  }

  // SFT and a few steps of policy gradient, with all that has a state: optimizer, baseline, sampler, reference policy.
  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& more = {},
                                   const std::string& algorithm = "reinforce") const {
    std::vector<std::string> sets = {"run.name=" + name,
                                     "run.folder=" + folder_.string(),
                                     "run.seed=3",
                                     "policy.model=" + (folder_ / "model").string(),
                                     "policy.device=cpu",
                                     "policy.max_prompt_tokens=4000",
                                     "data.split.train_level1=4",
                                     "data.split.train_level2=2",
                                     "data.split.rl_level1=1",
                                     "data.split.rl_level2=1",
                                     "data.split.heldout_level1=1",
                                     "data.split.heldout_level2=1",
                                     "sft.epochs=1",
                                     "sft.batch_size=2",
                                     "sft.max_tokens=6000",
                                     "eval.samples=2",
                                     "eval.sampling.max_new_tokens=12",
                                     "rl.steps=4",
                                     "rl.tasks_per_step=2",
                                     "rl.samples=2",
                                     "rl.sampling.max_new_tokens=12",
                                     "rl.algorithm=" + algorithm,
                                     "rl.overlong=penalty",
                                     "rl.overlong_tokens=8",
                                     "rl.loss.kl=0.1",
                                     "rl.loss.entropy=0.01",
                                     "rl.train.max_tokens=6000"};
    if (algorithm == "reinforce") sets.push_back("rl.advantage.baseline=moving");
    sets.insert(sets.end(), more.begin(), more.end());
    std::vector<std::string> words = {"train", source_dir() + "/configs/quickstart.yaml"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  }
  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  void expect_same_run(const fs::path& a, const fs::path& b) const {
    EXPECT_EQ(steps_of(a), steps_of(b));
    EXPECT_EQ(read_json(a / "results.json")["rows"], read_json(b / "results.json")["rows"]);
    EXPECT_EQ(read_json(a / "state.json")["best_checkpoint"], read_json(b / "state.json")["best_checkpoint"]);
    for (const char* folder : {"rollouts", "checkpoints"}) EXPECT_EQ(names_in(a / folder), names_in(b / folder));
    for (const std::string& name : names_in(b / "rollouts")) {
      if (!name.starts_with("step_")) continue;
      EXPECT_EQ(read_file(a / "rollouts" / name), read_file(b / "rollouts" / name)) << name;
    }
    for (const std::string& name : names_in(b / "checkpoints")) {
      for (const char* file : {"adapter_model.safetensors", "model.safetensors", "optimizer.safetensors"}) {
        if (!fs::exists(b / "checkpoints" / name / file)) continue;
        EXPECT_TRUE(read_file(a / "checkpoints" / name / file) == read_file(b / "checkpoints" / name / file))
            << name << "/" << file;
      }
    }
    EXPECT_EQ(names_in(a / "tensorboard").size(), 1u);
  }

  fs::path folder_;
};

// TRITONRL_KILLS = how often (dev/gpu.sh kills: 20).
TEST_F(Safety, KilledAtRandomMomentsItEndsWithTheSameBits) {
  const char* asked = std::getenv("TRITONRL_KILLS");
  int64_t kills = asked ? std::stoll(asked) : 3;
  const std::vector<std::string> sets = {"rl.steps=10", "checkpoint.keep_last=1", "checkpoint.keep_best=true",
                                         "checkpoint.after_save=echo $TRITONRL_STEP", "checkpoint.every_updates=1"};
  Ended whole = run(command("whole", sets));
  ASSERT_EQ(whole.code, 0) << whole.said;
  Rng rng(static_cast<uint64_t>(::time(nullptr)));  // Other moments each time; they are in the message.
  int64_t killed = 0, finished = 0;
  std::string moments;
  for (bool last = false; !last;) {
    last = killed >= kills;
    std::string name = cat("killed_", finished);
    // Most of a tiny run is the start of the verifier: three of four kills come behind it, the others anywhere.
    bool anywhere = killed % 4 == 3;
    double moment = rng.uniform() * (anywhere ? whole.seconds : 2);
    StopAt stop{anywhere ? "" : ": verifying: 4/4", SIGKILL, moment};
    Ended ended = run(command(name, sets), last ? StopAt{} : stop);
    if (ended.code == 128 + SIGKILL) {
      ++killed;
      fs::path state = folder_ / name / "state.json";
      size_t phases = fs::exists(state) ? read_json(state)["phases"].size() : 0;
      moments += cat("  ", name, ": ", fixed(moment, 2), " s ",
                     anywhere ? "after the start" : "after the first verdicts", ", ", phases, " phases done\n");
      continue;
    }
    ASSERT_EQ(ended.code, 0) << moments << ended.said;
    expect_same_run(folder_ / name, folder_ / "whole");
    ++finished;
    if (HasFailure()) break;
  }
  std::cout << killed << " kills, " << finished << " runs that ended with the bits of the one that was not killed ("
            << fixed(whole.seconds, 1) << " s)\n"
            << moments;
  EXPECT_FALSE(HasFailure()) << moments;
}

// Answers verified while others are sampled: nothing but times may tell the run from one that did one thing after the
// other, wherever it was stopped.
TEST_F(Safety, VerifyingWhileSamplingEndsWithTheSameBits) {
  for (const char* turns : {"1", "2"}) {
    auto streaming = [&](const std::string& name, const std::string& stream) {
      return command(
          cat(name, turns),
          {"sft.enabled=false", "policy.max_prompt_tokens=7000", "rl.train.max_tokens=7200", "rl.steps=2",
           "rl.samples=8", "rl.sampling.max_new_tokens=150", "rl.sampling.temperature=1", "verify.seed=4294967311",
           cat("rl.turns=", turns), cat("eval.turns=", turns), "rl.stream=" + stream, "eval.stream=" + stream});
    };
    Ended apart = run(streaming("apart", "false"));
    ASSERT_EQ(apart.code, 0) << apart.said;
    Ended beside = run(streaming("beside", "true"));
    ASSERT_EQ(beside.code, 0) << beside.said;
    expect_same_run(folder_ / cat("beside", turns), folder_ / cat("apart", turns));
    EXPECT_THAT(apart.said, Not(HasSubstr("tokens/s, ")));
    EXPECT_THAT(beside.said, HasSubstr("tokens/s, "));  // ..., so many verified.
    EXPECT_EQ(beside.said.find("rl/step_2: turn 2: sampling") != std::string::npos, *turns == '2');
    Rng rng(static_cast<uint64_t>(::time(nullptr)));  // Other moments each time; they are in the message.
    std::string moments;
    for (int i = 0; i < 2; ++i) {
      const char* text = i == 0 ? "eval/base: verifying" : "rl/step_1: reward";  // The step behind it is stopped.
      double moment = rng.uniform();
      Ended stopped = run(streaming("stopped", "true"), StopAt{text, i == 0 ? SIGTERM : SIGKILL, moment});
      moments += cat(" ", text, " + ", fixed(moment, 2), " s -> ", stopped.code, ";");
      EXPECT_TRUE(stopped.code == 0 || stopped.code == (i == 0 ? 130 : 128 + SIGKILL)) << stopped.said;
    }
    Ended last = run(streaming("stopped", "true"));
    ASSERT_EQ(last.code, 0) << moments << last.said;
    expect_same_run(folder_ / cat("stopped", turns), folder_ / cat("apart", turns));
    EXPECT_FALSE(HasFailure()) << moments;
    std::cout << turns << " turns, " << fixed(apart.seconds, 1) << " s:" << moments << "\n";
  }
}

// Answers of a step drawn while the step before trains: which policy drew them is a matter of numbers, not of time.
TEST_F(Safety, SamplingAheadRepeatsAndGoesOnAfterAStop) {
  auto ahead = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> sets = {
        "sft.enabled=false",        "rl.staleness=1",        "rl.samples=6", "rl.sampling.max_new_tokens=100",
        "rl.train.max_tokens=6200", "verify.seed=4294967311"};
    sets.insert(sets.end(), more.begin(), more.end());
    return command(name, sets);
  };
  Ended whole = run(ahead("whole"));
  ASSERT_EQ(whole.code, 0) << whole.said;
  std::vector<int64_t> staleness;
  for_each_json_line(folder_ / "whole/steps.jsonl", [&](int64_t, const Json& line) {
    if (line.at("phase") == "rl") staleness.push_back(line.at("staleness").get<int64_t>());
  });
  EXPECT_EQ(staleness, (std::vector<int64_t>{0, 1, 1, 1}));
  Json phases = read_json(folder_ / "whole/state.json").at("phases");
  EXPECT_EQ(phases.at("rl/step_3").at("ahead").at("version"), 2);
  EXPECT_TRUE(phases.at("rl/step_4").at("ahead").is_null()) << "nobody is drawn ahead of the last step";
  for (const std::string& name : names_in(folder_ / "whole/rollouts")) EXPECT_FALSE(name.starts_with("pending"));

  Ended on_policy = run(ahead("on_policy", {"rl.staleness=0"}));
  ASSERT_EQ(on_policy.code, 0) << on_policy.said;
  auto rollouts = [&](const std::string& name, int step) {
    return read_file(folder_ / name / cat("rollouts/step_00000", step, ".jsonl"));
  };
  EXPECT_EQ(rollouts("whole", 1), rollouts("on_policy", 1));
  EXPECT_NE(rollouts("whole", 2), rollouts("on_policy", 2)) << "another policy drew them";

  Ended streaming = run(ahead("streaming", {"rl.stream=true"}));
  ASSERT_EQ(streaming.code, 0) << streaming.said;
  expect_same_run(folder_ / "streaming", folder_ / "whole");

  Rng rng(static_cast<uint64_t>(::time(nullptr)));  // Other moments each time; they are in the message.
  std::string moments;
  bool behind = false;
  const char* texts[] = {"eval/base: verifying", "rl/step_1: sampling", "rl 1: ", "rl/step_2: reward", "rl 3: "};
  for (const char* text : texts) {
    double moment = rng.uniform() * 0.4;
    Ended stopped = run(ahead("stopped"), StopAt{text, rng.below(2) ? SIGTERM : SIGKILL, moment});
    moments += cat(" ", text, " + ", fixed(moment, 2), " s -> ", stopped.code, ";");
    behind = behind || stopped.said.find("continues after") != std::string::npos;
    if (stopped.code == 0) break;
  }
  Ended last = run(ahead("stopped"));
  ASSERT_EQ(last.code, 0) << moments << last.said;
  behind = behind || last.said.find("continues after") != std::string::npos;
  EXPECT_TRUE(behind) << moments;
  EXPECT_EQ(last.said.find("is not whole"), std::string::npos) << moments << last.said;
  expect_same_run(folder_ / "stopped", folder_ / "whole");
  EXPECT_FALSE(HasFailure()) << moments;
  std::cout << fixed(whole.seconds, 1) << " s:" << moments << "\n";

  // What was drawn ahead is gone and so is its policy: said, and done by the one that is there.
  fs::path run_dir = folder_ / "lost";
  Ended cut = run(ahead("lost"), StopAt{"rl/step_2: reward", SIGKILL, 0.2});
  if (cut.code == 0) return;
  for (const std::string& name : names_in(run_dir / "rollouts")) {
    if (name.starts_with("pending")) fs::remove(run_dir / "rollouts" / name);
  }
  Ended lost = run(ahead("lost"));
  EXPECT_EQ(lost.code, 0) << lost.said;
  EXPECT_THAT(lost.said, HasSubstr("is not whole; what is missing is drawn by rl_"));
}

TEST_F(Safety, ToldToStopInAnyPhaseItLeavesSoonAndGoesOnLater) {
  Ended whole = run(command("whole"));
  ASSERT_EQ(whole.code, 0) << whole.said;
  EXPECT_THAT(whole.said, Not(HasSubstr("tokens/s, "))) << "on the CPU nothing is verified while sampling";
  for (const char* phase : {"run directory: ", "verifying solutions", "eval/base: sampling", "sft: ",
                            "eval/sft: verifying", "rl/step_1: sampling", "rl 2: ", "rl/step_3: reward", "eval/rl: "}) {
    Ended stopped = run(command("stopped"), phase, SIGTERM);
    EXPECT_EQ(stopped.code, 130) << phase << ": " << stopped.said;
    EXPECT_LT(stopped.seconds_to_stop, 30) << phase;
    std::cout << phase << " -> " << fixed(stopped.seconds_to_stop, 2) << " s\n";
  }
  Ended last = run(command("stopped"));
  ASSERT_EQ(last.code, 0) << last.said;
  expect_same_run(folder_ / "stopped", folder_ / "whole");
}

TEST_F(Safety, FineTuningThatWasStoppedGoesOnBehindItsLastUpdate) {
  const std::map<std::string, std::vector<std::string>> kinds = {
      {"lora", {"sft.epochs=12"}},
      {"full", {"sft.epochs=12", "lora.full=true"}},
      {"stream", {"data.train.stream=64", "data.verify_share=0.05"}}};
  for (const auto& [kind, own] : kinds) {
    std::vector<std::string> sets = {"rl.steps=1", "checkpoint.every_updates=5"};
    sets.insert(sets.end(), own.begin(), own.end());
    const std::string reference = "whole_" + kind;
    Ended whole = run(command(reference, sets));
    ASSERT_EQ(whole.code, 0) << whole.said;
    bool within = false;
    for (double delay : {0.5, 0.2, 1.0, 0.05, 2.0}) {  // Until one falls into the fine-tuning.
      std::string name = cat("stopped_", kind, "_", delay);
      run(command(name, sets), StopAt{"base, level all", SIGTERM, delay});
      Json phases = read_json(folder_ / name / "state.json")["phases"];
      if (!phases.contains("sft/part_1") || phases.contains("sft")) continue;
      within = true;
      Ended rest = run(command(name, sets));
      ASSERT_EQ(rest.code, 0) << rest.said;
      EXPECT_THAT(rest.said, HasSubstr("sft: continues after update"));
      expect_same_run(folder_ / name, folder_ / reference);
      break;
    }
    EXPECT_TRUE(within);
    EXPECT_EQ(fs::exists(folder_ / reference / "checkpoints/rl_1/model.safetensors"), kind == "full");
    EXPECT_EQ(fs::exists(folder_ / reference / "tasks/train.jsonl"), kind != "stream");
    EXPECT_EQ(whole_lines(folder_ / reference / "tasks/taught.jsonl") >= 64, kind == "stream");
  }
}

TEST_F(Safety, NumbersThatAreNoneEndTheRunAndTheLastCheckpointIsWhole) {
  Ended sft = run(command("sft", {"sft.optimizer.lr=1e30", "sft.optimizer.warmup=0"}));
  EXPECT_EQ(sft.code, 3) << sft.said;
  EXPECT_THAT(sft.said, HasSubstr("is not finite"));
  EXPECT_THAT(sft.said, HasSubstr("tasks graphs/"));
  EXPECT_TRUE(names_in(folder_ / "sft/checkpoints").empty());
  // Several updates a step: what the first one leaves is noticed by the second, before anything is saved.
  Ended rl = run(command("rl", {"rl.train.optimizer.lr=1e30", "rl.train.optimizer.warmup=0"}, "gspo"));
  EXPECT_EQ(rl.code, 3) << rl.said;
  EXPECT_THAT(rl.said, HasSubstr("is not finite"));
  EXPECT_EQ(names_in(folder_ / "rl/checkpoints"), std::set<std::string>{"sft"});
  EXPECT_EQ(read_json(folder_ / "rl/checkpoints/sft/checkpoint.json").at("name"), "sft");
  Ended more = run(command("more", {"run.start_from=" + (folder_ / "rl").string()}));  // As the hint says.
  EXPECT_EQ(more.code, 0) << more.said;
  std::vector<std::string> evaluations;  // Those that it took over too: curves begin there.
  for_each_json_line(folder_ / "more/steps.jsonl", [&](int64_t, const Json& line) {
    if (line.at("phase") == "eval") evaluations.push_back(line.at("unit").get<std::string>());
  });
  EXPECT_EQ(evaluations, (std::vector<std::string>{"eval/base", "eval/sft", "eval/rl"}));
}

// What is exported is what another run begins with: with a rate of next to nothing it ends with the same bytes.
TEST_F(Safety, ARunGoesOnFromAnAdapterThatWasExported) {
  auto exported = [&](const std::string& checkpoint, const std::string& to) {
    Ended ended =
        run({"model", "export", (folder_ / checkpoint).string(), (folder_ / to).string(), "--base", "me/tiny"});
    EXPECT_EQ(ended.code, 0) << ended.said;
    return read_file(folder_ / to / "adapter_model.safetensors");
  };
  ASSERT_EQ(run(command("first", {"rl.steps=0", "sft.optimizer.lr=1e-3"})).code, 0);
  const std::string bytes = exported("first/checkpoints/sft", "adapter");
  EXPECT_THAT(bytes, HasSubstr("\"BF16\""));
  Json config = read_json(folder_ / "adapter/adapter_config.json");
  EXPECT_EQ(config.at("base_model_name_or_path"), "me/tiny");
  EXPECT_THAT(config.dump(), Not(HasSubstr(folder_.string())));
  EXPECT_TRUE(fs::exists(folder_ / "adapter/training_set.json"));
  const std::string from = "policy.adapter=" + (folder_ / "adapter").string();
  Ended second = run(command("second", {"rl.steps=0", "sft.optimizer.lr=1e-30", "sft.optimizer.weight_decay=0", from}));
  EXPECT_EQ(second.code, 0) << second.said;
  EXPECT_TRUE(exported("second/checkpoints/sft", "again") == bytes);
  EXPECT_FALSE(exported("first/checkpoints/sft", "third") != bytes);
  Ended other = run(command("other", {"lora.rank=2", from}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.said, HasSubstr("lora says an adapter of rank 2"));
  EXPECT_EQ(run({"model", "export", (folder_ / "first/checkpoints/sft").string(), (folder_ / "adapter").string()}).code,
            2);
  EXPECT_EQ(run({"model", "export", (folder_ / "model").string(), (folder_ / "none").string()}).code, 2);
}

TEST_F(Safety, ADiskThatIsFullWhileSavingLeavesNoHalfCheckpointAndTheRunGoesOnLater) {
  const std::vector<std::string> large = {"lora.rank=256"};  // An adapter larger than anything else that is written.
  struct rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = {1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  Ended full = run(command("full", large));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(full.code, 3) << full.said;
  EXPECT_THAT(full.said, HasSubstr("the checkpoint could not be saved"));
  EXPECT_THAT(full.said, HasSubstr("adapter_model.safetensors"));
  EXPECT_THAT(full.said, HasSubstr("hint: free some space"));
  EXPECT_TRUE(names_in(folder_ / "full/checkpoints").empty());
  Ended again = run(command("full", large));
  EXPECT_EQ(again.code, 0) << again.said;
}

TEST_F(Safety, ACheckpointThatWasChangedStopsTheRun) {
  ASSERT_EQ(run(command("run"), "rl/step_2: reward", SIGTERM).code, 130);
  fs::path file;
  for (const std::string& name : names_in(folder_ / "run/checkpoints")) {  // Whichever it continues from.
    file = folder_ / "run/checkpoints" / name / "optimizer.safetensors";
    if (!fs::exists(file)) continue;
    std::string bytes = read_file(file);
    bytes[bytes.size() - 5] ^= 1;
    write_file(file, bytes);
  }
  Ended ended = run(command("run"));
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_THAT(ended.said, HasSubstr("optimizer.safetensors: is not what was saved"));
}

}  // namespace
}  // namespace tritonrl::safety_test
