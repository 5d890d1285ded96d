// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/assemble.h"
#include "app/pipeline.h"
#include "base/build_paths.h"

namespace tritonrl::app_test {
namespace {

using testing::HasSubstr;

const std::string kConfigs = source_dir() + "/configs/";

std::string error(const std::vector<std::string>& sets) {
  try {
    load_config<Config>({kConfigs + "quickstart.yaml"}, sets);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "no error";
}

TEST(AppConfig, ShippedFilesLoadAndPrintToTheSame) {
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    Config config = load_config<Config>({entry.path().string()}, {});
    std::string copy = testing::TempDir() + "/resolved.yaml";
    write_file(copy, to_yaml(config));
    EXPECT_EQ(to_yaml(load_config<Config>({copy}, {})), to_yaml(config)) << entry.path();
  }
}

TEST(AppConfig, ShippedFilesFindEnoughTasks) {
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    DataConfig config = load_config<Config>({entry.path().string()}, {}).data;
    EXPECT_NO_THROW(make_splits(synthesise(config.synth, config.synth_level1, config.synth_level2), config.split))
        << entry.path();
  }
}

TEST(AppConfig, TyposAndContradictionsAreRefused) {
  EXPECT_THAT(error({"sft.optimiser.lr=1"}), HasSubstr("did you mean 'sft.optimizer'?"));
  EXPECT_THAT(error({"sft.lr=1"}), HasSubstr("did you mean 'sft.optimizer.lr'?"));
  EXPECT_THAT(error({"rl.lr=1"}), HasSubstr("did you mean 'rl.train.optimizer.lr'?"));
  EXPECT_THAT(error({"rl.samples=2"}), HasSubstr("best_of_n.keep = 3 exceeds samples = 2"));
  EXPECT_THAT(error({"sft.enabled=false", "rl.steps=0"}), HasSubstr("nothing to do"));
  EXPECT_THAT(error({"reward.shape=stagd"}), HasSubstr("did you mean 'staged'?"));
  EXPECT_THAT(error({"run.name=a/b"}), HasSubstr("one plain folder name"));
  EXPECT_THAT(error({"lora.targets=[q_pro]"}), HasSubstr("did you mean 'q_proj'?"));
  EXPECT_THAT(error({"rl.turns=0"}), HasSubstr("turns must be at least 1"));
  EXPECT_THAT(error({"eval.turns=0"}), HasSubstr("turns must be at least 1"));
  EXPECT_THAT(error({"rl.gamma=1.5"}), HasSubstr("gamma is a discount"));
  EXPECT_THAT(error({"rl.stop_when_correct=often"}), HasSubstr("stop_when_correct"));
  EXPECT_THAT(error({"data.feedback_chars=10"}), HasSubstr("feedback_chars"));
  EXPECT_THAT(error({"eval.sampling.top_p=0"}), HasSubstr("top_p must lie in (0, 1]"));
}

TEST(AppConfig, EveryFieldHasHelpOrIsASection) {
  for (const std::string& line : split(to_yaml(Config{}, true), '\n')) {
    bool section = !line.empty() && trim(line).back() == ':';
    EXPECT_TRUE(line.empty() || section || line.find(" # ") != std::string::npos) << line;
  }
}

TEST(Assemble, UnknownChoicesAreErrors) {
  SamplerConfig sampler;
  sampler.type = "oracle";
  EXPECT_THROW(make_task_sampler(sampler, {}), Error);
  TimingConfig timing;
  timing.type = "stopwatch";
  EXPECT_THROW(make_timing(timing), Error);
  RlConfig rl;
  rl.credit = "magic";
  EXPECT_THROW(make_credit(rl), Error);
  EXPECT_THROW(find_data_file("prompts/no_such.txt"), Error);
  EXPECT_TRUE(std::filesystem::exists(find_data_file("prompts/triton.txt")));
}

TEST(Assemble, TurnsAreOneUnlessAskedFor) {
  Config config;
  config.data.feedback = "no_such.txt";
  EXPECT_EQ(rl_turns(config).turns, 1);  // And no file is read.
  EXPECT_NO_THROW(check_choices(config));
  config.rl.turns = 2;
  EXPECT_THROW(check_choices(config), Error);
  config = load_config<Config>({kConfigs + "quickstart.yaml", kConfigs + "algorithms/multi_turn.yaml"}, {});
  EXPECT_EQ(rl_turns(config).stop_when_correct, "untimed");
  EXPECT_EQ(rl_turns(config).max_prompt_tokens, 2048);
  EXPECT_EQ(rl_turns(config).prompt.render("x", false).role, "user");
  EXPECT_EQ(eval_turns(config).turns, 2);
  EXPECT_EQ(eval_turns(config).stop_when_correct, "always");
}

TEST(Assemble, TimingIsPlainOrCalibrated) {
  EXPECT_EQ(Config{}.timing.type, "calibrated");
  TimingConfig timing;
  EXPECT_EQ(make_timing(timing)->spec().batch, 25);
  EXPECT_TRUE(make_timing(timing)->spec().cold);
  timing.readings = 10;
  timing.half_width = 0.03;
  auto loose = make_timing(timing);
  EXPECT_EQ(loose->spec().batch, 10);
  EXPECT_EQ(loose->spec().readings_per_place, 2);
  std::vector<Reading> readings(10, {1e-3, 1e-3, 0, 0, 0});
  for (size_t i = 0; i < readings.size(); ++i) readings[i].reference_s *= 1 + 0.02 * static_cast<double>(i % 3);
  EXPECT_FALSE(loose->want_more(readings)) << "an interval of two per cent";
  EXPECT_TRUE(make_timing({})->want_more(readings)) << "fewer than fifty";
  timing.readings = 5;
  EXPECT_THROW(make_timing(timing), Error);
  timing = {};
  timing.half_width = 0;
  EXPECT_THROW(make_timing(timing), Error);
  timing.type = "plain";
  EXPECT_EQ(make_timing(timing)->spec().batch, 5);
  EXPECT_FALSE(make_timing(timing)->spec().cold);
  Config config;
  config.timing = timing;
  EXPECT_EQ(make_verify_seams(config).timing->spec().warm_ups, 1);
}

TEST(Assemble, DefaultsAreTheOriginalCasesStagedAndAFixedMix) {
  Config config;
  VerifySeams seams = make_verify_seams(config);
  Task task;
  task.source = "N = 1024\n";
  task.tiny = {{"N", 4}};
  EXPECT_EQ(seams.cases->cases(task).size(), 2u);
  EXPECT_EQ(seams.order->next({{Stage::kTinyRun, Outcome::kWrongOutput, 0, ""}}), std::nullopt);
  EXPECT_EQ(config.data.sampler.type, "fixed_mix");
  config.cases.type = "several";
  EXPECT_THROW(make_verify_seams(config), Error);
  config.cases.type = "original";
  config.stages.type = "some";
  EXPECT_THROW(make_verify_seams(config), Error);
}

TEST(Assemble, AlgorithmsLieOverAnyConfig) {
  int64_t seen = 0;
  for (const char* base : {"quickstart.yaml", "gpu.yaml", "qwen7b.yaml", "qwen7b_full.yaml"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kConfigs + "algorithms")) {
      SCOPED_TRACE(entry.path().string());
      Config config = load_config<Config>({kConfigs + base, entry.path().string()}, {});
      check_choices(config);
      bool imitates = config.rl.credit == "best_of_n" || config.rl.credit == "reward_weighted";
      EXPECT_EQ(has_advantages(config.rl), !imitates);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 60);
}

TEST(Assemble, WhatNoAlgorithmMeansIsRefused) {
  const std::string gpu = kConfigs + "gpu.yaml";
  auto with = [&](const std::string& overlay, const std::vector<std::string>& sets) {
    return load_config<Config>({gpu, kConfigs + "algorithms/" + overlay}, sets);
  };
  EXPECT_THROW(with("reinforce.yaml", {"rl.train.updates=2"}), Error) << "no ratio for the second";
  EXPECT_THROW(with("reinforce.yaml", {"rl.train.epochs=2"}), Error);
  EXPECT_NO_THROW(with("reinforce.yaml", {"rl.train.updates=0", "rl.train.batch_size=0"}));
  EXPECT_NO_THROW(with("reinforce.yaml", {"rl.train.updates=2", "rl.loss.objective=clip"}));
  EXPECT_THROW(load_config<Config>({gpu}, {"rl.credit=grpo"}), Error) << "a fresh optimizer every step";
  EXPECT_THROW(with("grpo.yaml", {"rl.staleness=1"}), Error) << "no correction";
  EXPECT_NO_THROW(with("grpo.yaml", {"rl.staleness=1", "rl.loss.correction=token"}));
  EXPECT_NO_THROW(with("best_of_n.yaml", {"rl.staleness=1"}));
  EXPECT_THROW(with("best_of_n.yaml", {"rl.staleness=2"}), Error);
  EXPECT_THROW(with("dapo.yaml", {"rl.staleness=1", "rl.loss.correction=token"}), Error) << "two ways to choose tasks";
  EXPECT_THROW(with("best_of_n.yaml", {"rl.loss.kl=0.1"}), Error) << "imitation has no use for it";
  EXPECT_THROW(with("grpo.yaml", {"rl.loss.kl=0.1", "rl.loss.kl_in=reward"}), Error) << "k3 in the reward";
  EXPECT_NO_THROW(with("grpo.yaml", {"rl.loss.kl=0.1", "rl.loss.kl_in=reward", "rl.loss.kl_estimator=k1"}));
  const std::vector<std::string> heldout = {"checkpoint.keep_best=true", "checkpoint.best_by=heldout"};
  EXPECT_THROW(with("grpo.yaml", heldout), Error) << "nothing to choose by";
  EXPECT_NO_THROW(with("grpo.yaml", {heldout[0], heldout[1], "eval.every=2"}));
}

TEST(Assemble, LearningRatesFallOverTheRun) {
  RlConfig rl;
  rl.steps = 5;
  EXPECT_EQ(rl.decay_at(5), 1);
  rl.decay = "linear";
  rl.decay_to = 0.2;
  EXPECT_DOUBLE_EQ(rl.decay_at(1), 1);
  EXPECT_DOUBLE_EQ(rl.decay_at(3), 0.6);
  EXPECT_DOUBLE_EQ(rl.decay_at(5), 0.2);
  rl.decay = "cosine";
  EXPECT_DOUBLE_EQ(rl.decay_at(3), 0.6);
  EXPECT_NEAR(rl.decay_at(2), 0.2 + 0.8 * 0.853553, 1e-6);
  rl.steps = 1;
  EXPECT_EQ(rl.decay_at(1), 1);
}

// Each of the sixteen combinations of configs/ablate/ is what its files say.
TEST(Assemble, AblationsCombine) {
  std::vector<Task> tasks(4);
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].id = cat("t", i);
    tasks[i].level = i < 2 ? 1 : 2;
    tasks[i].source = "N = 1024\n";
  }
  for (unsigned on = 0; on < 16; ++on) {
    std::vector<std::string> files = {kConfigs + "gpu.yaml", kConfigs + "ablate/none.yaml"};
    const char* names[] = {"multi_input", "staged", "curriculum", "calibrated"};
    for (unsigned i = 0; i < 4; ++i) {
      if (on >> i & 1) files.push_back(cat(kConfigs, "ablate/", names[i], ".yaml"));
    }
    Config config = load_config<Config>(files, {});
    VerifySeams seams = make_verify_seams(config);
    auto sampler = make_task_sampler(config.data.sampler, tasks);
    EXPECT_EQ(seams.cases->cases(tasks[0]).size(), on & 1 ? 6u : 1u) << on;
    EXPECT_EQ(seams.order->next({{Stage::kTinyRun, Outcome::kTimeout, 0, ""}}).has_value(), !(on & 2)) << on;
    EXPECT_EQ(sampler->metrics().at("sampler/level2_share"), on & 4 ? 0.1 : 0.5) << on;
    EXPECT_EQ(seams.timing->spec().cold, (on & 8) != 0) << on;
  }
}

TEST(Assemble, NamesAreCheckedWithoutTasks) {
  Config config;
  for (const char* type : {"fixed_mix", "adaptive", "gate", "promote"}) {
    config.data.sampler.type = type;
    EXPECT_NO_THROW(check_choices(config)) << type;
  }
  config.data.sampler.type = "oracle";
  EXPECT_THROW(check_choices(config), Error);
  config.rl.steps = 0;  // No tasks are drawn then.
  EXPECT_NO_THROW(check_choices(config));
  config.stages.type = "some";
  EXPECT_THROW(check_choices(config), Error);
}

TEST(Assemble, EverySamplerIsThere) {
  std::vector<Task> tasks(2);
  tasks[0].id = "a";
  tasks[1].id = "b";
  tasks[1].level = 2;
  for (const char* type : {"fixed_mix", "adaptive", "gate", "promote"}) {
    SamplerConfig config;
    config.type = type;
    EXPECT_EQ(make_task_sampler(config, tasks)->next(3).size(), 3u) << type;
  }
}

TEST(Environment, NamesWhatRan) {
  Json env = environment();
  EXPECT_THAT(env["program"].get<std::string>(), HasSubstr("tritonrl"));
  EXPECT_GT(env["cores"].get<int>(), 0);
  EXPECT_FALSE(env["torch"].get<std::string>().empty());
}

}  // namespace
}  // namespace tritonrl::app_test
