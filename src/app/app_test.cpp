// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/assemble.h"
#include "app/train/pipeline.h"
#include "base/process/build_paths.h"

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
    EXPECT_NO_THROW(graphs::synthesise(config.synth, config.split)) << entry.path();
  }
}

TEST(AppConfig, TyposAndContradictionsAreRefused) {
  EXPECT_THAT(error({"sft.optimiser.lr=1"}), HasSubstr("did you mean 'sft.optimizer'?"));
  EXPECT_THAT(error({"data.graphs.seed=1"}), HasSubstr("unknown key 'data.graphs'\n  hint: it is 'data.synth' now"));
  EXPECT_THAT(error({"data.synth_level1=600"}), HasSubstr("data.split"));
  EXPECT_THAT(error({"data.synth.families.gemm=0"}), HasSubstr("'data.synth.operators'"));
  EXPECT_THAT(error({"data.synth.operators=core"}), HasSubstr("must be a list"));
  EXPECT_THAT(error({"data.synth.operators=[sofmax]"}), HasSubstr("did you mean 'softmax'?"));
  EXPECT_THAT(error({"data.synth.operators=[conv]"}), HasSubstr("none that style 'plain' draws"));
  EXPECT_THAT(error({"sft.lr=1"}), HasSubstr("did you mean 'sft.optimizer.lr'?"));
  EXPECT_THAT(error({"rl.lr=1"}), HasSubstr("did you mean 'rl.train.optimizer.lr'?"));
  EXPECT_THAT(error({"rl.samples=2"}), HasSubstr("best_of_n.keep = 3 exceeds samples = 2"));
  EXPECT_THAT(error({"sft.enabled=false", "rl.steps=0"}), HasSubstr("nothing to do"));
  EXPECT_THAT(error({"reward.shape=stagd"}), HasSubstr("did you mean 'staged'?"));
  EXPECT_THAT(error({"run.name=a/b"}), HasSubstr("one plain folder name"));
  EXPECT_THAT(error({"lora.targets=[q_pro]"}), HasSubstr("did you mean 'q_proj'?"));
  EXPECT_THAT(error({"rl.turns=0"}), HasSubstr("turns must be at least 1"));
  EXPECT_THAT(error({"eval.turns=0"}), HasSubstr("turns must be at least 1"));
  EXPECT_THAT(error({"rl.algorithm=grpo", "rl.gamma=1.5"}), HasSubstr("gamma is a discount"));
  EXPECT_THAT(error({"rl.stop_when_correct=often"}), HasSubstr("stop_when_correct"));
  EXPECT_THAT(error({"data.feedback_chars=10"}), HasSubstr("feedback_chars"));
  EXPECT_THAT(error({"data.verify_share=0"}), HasSubstr("verify_share"));
  EXPECT_THAT(error({"data.synth.repeats=0"}), HasSubstr("repeats"));
  EXPECT_THAT(error({"data.synth.products=tf32"}), HasSubstr("verify.tolerance: fp32 rejects"));
  EXPECT_THAT(error({"eval.sampling.top_p=0"}), HasSubstr("top_p must lie in (0, 1]"));
}

TEST(AppConfig, EveryFieldHasHelpOrIsASection) {
  for (const std::string& line : split(to_yaml(Config{}, true), '\n')) {
    bool section = !line.empty() && trim(line).back() == ':';
    EXPECT_TRUE(line.empty() || section || line.find(" # ") != std::string::npos) << line;
  }
}

TEST(Assemble, UnknownChoicesAreErrors) {
  EXPECT_THAT(error({"data.sampler.type=adaptve"}), HasSubstr("did you mean 'adaptive'?"));
  EXPECT_THAT(error({"timing.type=stopwatch"}), HasSubstr("is not one of: plain, calibrated"));
  EXPECT_THAT(error({"timing.calibrated.readings=5"}), HasSubstr("readings must lie in [10, 400]"));
  EXPECT_THAT(error({"cases.multi_input.list=[doubled]"}), HasSubstr("does not begin with original"));
  EXPECT_THAT(error({"data.sampler.gate.groups=0"}), HasSubstr("data.sampler.gate: groups and rest"));
  EXPECT_THROW(Config().data.sampler.make({}), Error) << "no tasks";
  EXPECT_THROW(find_data_file("prompts/no_such.txt"), Error);
  EXPECT_TRUE(std::filesystem::exists(find_data_file("prompts/triton.txt")));
}

TEST(Assemble, OldKeysOfSeamsAreRefusedAndTheNewOnesNamed) {
  EXPECT_THAT(error({"data.sampler.level2_share=0.2"}), HasSubstr("data.sampler.fixed_mix.level2_share"));
  EXPECT_THAT(error({"data.sampler.target_accuracy=0.2"}), HasSubstr("data.sampler.adaptive.target_accuracy"));
  EXPECT_THAT(error({"data.sampler.gate_rest=2"}), HasSubstr("did you mean 'data.sampler.gate.rest'?"));
  EXPECT_THAT(error({"data.sampler.promote_at=0.2"}), HasSubstr("did you mean 'data.sampler.promote.at'?"));
  EXPECT_THAT(error({"timing.half_width=0.1"}), HasSubstr("did you mean 'timing.calibrated.half_width'?"));
  EXPECT_THAT(error({"cases.count=2"}), HasSubstr("did you mean 'cases.multi_input.count'?"));
}

TEST(Assemble, TurnsAreOneUnlessAskedFor) {
  Config config;
  config.data.feedback = "no_such.txt";
  EXPECT_EQ(rl_turns(config).turns, 1);  // And no file is read.
  EXPECT_NO_THROW(check_choices(config));
  config.rl.turns = 2;
  EXPECT_THROW(check_choices(config), Error);
  config = load_config<Config>({kConfigs + "quickstart.yaml", kConfigs + "algorithms/multi_turn.yaml"}, {});
  EXPECT_EQ(rl_turns(config).stop_when_correct, StopWhenCorrect::kUntimed);
  EXPECT_EQ(rl_turns(config).max_prompt_tokens, 2048);
  EXPECT_EQ(rl_turns(config).prompt.render("x", false).role, "user");
  EXPECT_EQ(eval_turns(config).turns, 2);
  EXPECT_EQ(eval_turns(config).stop_when_correct, StopWhenCorrect::kAlways);
}

TEST(Assemble, TimingIsPlainOrCalibrated) {
  Config config;
  EXPECT_EQ(config.timing.type, "calibrated");
  auto usual = config.timing.make();
  EXPECT_EQ(usual->spec().batch, 25);
  EXPECT_TRUE(usual->spec().cold);
  auto loose = load_config<Config>({}, {"timing.calibrated={readings: 10, half_width: 0.03}"}).timing.make();
  EXPECT_EQ(loose->spec().batch, 10);
  EXPECT_EQ(loose->spec().readings_per_place, 2);
  std::vector<Reading> readings(10, {1e-3, 1e-3, 0, 0, 0});
  for (size_t i = 0; i < readings.size(); ++i) readings[i].reference_s *= 1 + 0.02 * static_cast<double>(i % 3);
  EXPECT_FALSE(loose->want_more(readings)) << "an interval of two per cent";
  EXPECT_TRUE(usual->want_more(readings)) << "fewer than fifty";
  config.timing.type = "plain";
  EXPECT_EQ(config.timing.make()->spec().batch, 5);
  EXPECT_FALSE(config.timing.make()->spec().cold);
  EXPECT_EQ(make_verify_seams(config).timing->spec().warm_ups, 1);
}

TEST(Assemble, DefaultsAreEveryCaseStagedAndAFixedMix) {
  Config config;
  VerifySeams seams = make_verify_seams(config);
  Task task;
  task.source = "N = 1024\n";
  task.tiny = {{"N", 4}};
  std::vector<std::string> names;
  for (const CaseSpec& spec : seams.cases->cases(task)) names.push_back(spec.name);
  EXPECT_THAT(names, testing::ElementsAre("full", "tiny", "doubled", "reseeded", "larger", "larger_in_ratio",
                                          "precision", "uniform", "small", "large", "magnitudes"));
  EXPECT_EQ(config.verify.tolerance, Tolerance::kTf32);
  EXPECT_EQ(seams.order->next({{Stage::kTinyRun, 0, Rule::kRace}}), std::nullopt);
  EXPECT_EQ(config.data.sampler.type, "fixed_mix");
  config.cases.type = "several";
  EXPECT_THROW(make_verify_seams(config), Error);
  config.cases.type = "original";
  config.stages.type = "some";
  EXPECT_THROW(make_verify_seams(config), Error);
}

// The keys of `node` with their values, dotted.
void flatten(const ConfigNode& node, const std::string& path, std::map<std::string, std::string>* out) {
  if (node.kind == ConfigNode::Kind::kScalar) (*out)[path] = node.scalar;
  if (node.kind == ConfigNode::Kind::kList) (*out)[path] = "[" + join(node.list, ", ") + "]";
  for (const auto& [name, child] : node.map) flatten(child, path.empty() ? name : path + "." + name, out);
}

std::map<std::string, std::string> resolved(const Config& config) {
  std::string file = testing::TempDir() + "/app_test_resolved.yaml";
  write_file(file, to_yaml(config));
  std::map<std::string, std::string> out;
  flatten(parse_yaml_file(file), "", &out);
  return out;
}

// The tables were written down from the program before (tests/golden/config/ORIGIN.md).
TEST(Assemble, AlgorithmsAreWhatTheirOverlaysWere) {
  Json golden = read_json(source_dir() + "/tests/golden/config/algorithms.json");
  auto hold = [&](const std::string& what, const Config& config, const Json& changes) {
    SCOPED_TRACE(what);
    Json was = golden["gpu"];
    was.update(changes);
    auto now = resolved(config);
    int64_t compared = 0;
    for (const auto& [key, value] : now) {
      if (!was.contains(key)) continue;
      EXPECT_EQ(value, was[key].get<std::string>()) << key;
      ++compared;
    }
    EXPECT_GE(compared, 35);
    for (const auto& [key, value] : changes.items()) {  // What an overlay said is a key still, or comes with the name.
      EXPECT_TRUE(now.count(key) || key == "rl.credit" || key == "rl.loss.objective") << key;
    }
    std::string credit = was["rl.credit"], objective = was["rl.loss.objective"];
    EXPECT_EQ(has_advantages(config.rl.algorithm), credit != "best_of_n" && credit != "reward_weighted");
    if (!has_advantages(config.rl.algorithm)) {
      EXPECT_EQ(credit, name_of(config.rl.algorithm));
      return;
    }
    EXPECT_EQ(objective, name_of(config.rl.loss.objective));
    const char* formulas[] = {"reinforce", "rloo", "grpo", "reinforce_pp"};
    EXPECT_EQ(credit, formulas[static_cast<size_t>(config.rl.advantage.formula)]);
  };
  const std::string gpu = kConfigs + "gpu.yaml";
  EXPECT_EQ(golden["overlays on gpu"].size(), names_of<Algorithm>().size() + 1);
  for (const std::string& name : names_of<Algorithm>()) {
    hold(name, load_config<Config>({gpu}, {"rl.algorithm=" + name}), golden["overlays on gpu"][name]);
  }
  hold("one step off-policy", load_config<Config>({gpu}, {"rl.algorithm=grpo", "rl.staleness=1"}),
       golden["overlays on gpu"]["grpo one step off-policy"]);
  for (const auto& [name, changes] : golden["kept overlays on gpu"].items()) {
    hold(name, load_config<Config>({gpu, kConfigs + "algorithms/" + name + ".yaml"}, {}), changes);
  }
  for (const auto& [name, changes] : golden["configs"].items()) {
    hold(name, load_config<Config>({kConfigs + name + ".yaml"}, {}), changes);
  }
}

TEST(Assemble, AlgorithmsLieOverAnyConfig) {
  for (const char* base : {"quickstart.yaml", "gpu.yaml", "qwen7b.yaml", "qwen7b_full.yaml"}) {
    for (const std::string& name : names_of<Algorithm>()) {
      SCOPED_TRACE(cat(base, " ", name));
      std::vector<std::string> sets = {"rl.algorithm=" + name};
      // That file asks for several updates.
      if (name == "reinforce" && base == std::string("qwen7b_full.yaml")) sets.push_back("rl.train.updates=1");
      Config config = load_config<Config>({kConfigs + base}, sets);
      check_choices(config);
      std::string copy = testing::TempDir() + "/app_test_algorithm.yaml";
      write_file(copy, to_yaml(config));
      EXPECT_EQ(to_yaml(load_config<Config>({copy}, {})), to_yaml(config));
    }
    for (const auto& entry : std::filesystem::directory_iterator(kConfigs + "algorithms")) {
      SCOPED_TRACE(entry.path().string());
      check_choices(load_config<Config>({kConfigs + base, entry.path().string()}, {}));
    }
  }
}

TEST(Assemble, WhatNoAlgorithmMeansIsRefused) {
  auto with = [&](const std::string& algorithm, std::vector<std::string> sets) {
    sets.push_back("rl.algorithm=" + algorithm);
    return error(sets);
  };
  const std::string fine = "no error";
  EXPECT_THAT(with("reinforce", {"rl.train.updates=2"}), HasSubstr("off-policy")) << "no ratio for the second";
  EXPECT_THAT(with("reinforce", {"rl.train.epochs=2"}), HasSubstr("off-policy"));
  EXPECT_EQ(with("reinforce", {"rl.train.updates=0", "rl.train.batch_size=0"}), fine);
  EXPECT_THAT(with("grpo", {"rl.train.optimizer.schedule=cosine"}), HasSubstr("fresh optimizer"));
  EXPECT_THAT(with("grpo", {"rl.staleness=1", "rl.loss.correction=none"}), HasSubstr("older policy"));
  for (const char* algorithm : {"grpo", "reinforce", "best_of_n", "cispo"}) {
    EXPECT_EQ(with(algorithm, {"rl.staleness=1"}), fine);
  }
  EXPECT_THAT(with("best_of_n", {"rl.staleness=2"}), HasSubstr("staleness is 0 or 1"));
  EXPECT_THAT(with("dapo", {"rl.staleness=1"}), HasSubstr("one of them must be 0")) << "two ways to choose tasks";
  EXPECT_THAT(with("grpo", {"rl.loss.kl=0.1", "rl.loss.kl_in=reward"}), HasSubstr("k3")) << "k3 in the reward";
  EXPECT_EQ(with("grpo", {"rl.loss.kl=0.1", "rl.loss.kl_in=reward", "rl.loss.kl_estimator=k1"}), fine);
  EXPECT_THAT(with("ppo", {}), HasSubstr("not one of: best_of_n, reward_weighted, reinforce"));
  const std::string keep_best = "checkpoint.keep_best=true", heldout = "checkpoint.best_by=heldout";
  EXPECT_THAT(with("grpo", {keep_best, heldout}), HasSubstr("without evaluations to choose by"));
  EXPECT_EQ(with("grpo", {keep_best, heldout, "eval.every=2"}), fine);
}

TEST(Assemble, KeysOfOtherAlgorithmsAndOldOnesAreRefused) {
  auto with = [&](const std::string& algorithm, const std::string& set) {
    return error({"rl.algorithm=" + algorithm, set});
  };
  EXPECT_THAT(with("best_of_n", "rl.loss.kl=0.1"), HasSubstr("key 'rl.loss' is for algorithms with advantages"));
  EXPECT_THAT(with("best_of_n", "rl.resample_rounds=1"), HasSubstr("for algorithms that compare"));
  EXPECT_THAT(with("reinforce", "rl.resample_rounds=1"), HasSubstr("for algorithms that compare"));
  EXPECT_THAT(with("grpo", "rl.best_of_n.keep=2"), HasSubstr("'rl.best_of_n' is for rl.algorithm: best_of_n only"));
  EXPECT_THAT(with("grpo", "rl.advantage.baseline=none"), HasSubstr("for rl.algorithm: reinforce only"));
  EXPECT_THAT(with("rloo", "rl.advantage.scale=none"), HasSubstr("for the GRPO family only"));
  EXPECT_THAT(with("cispo", "rl.loss.ratio=sequence"), HasSubstr("for algorithms that clip"));
  EXPECT_THAT(with("reinforce", "rl.loss.clip_high=0.3"), HasSubstr("with an importance ratio only"));
  EXPECT_THAT(error({"rl.credit=grpo"}), HasSubstr("it is 'rl.algorithm' now"));
  EXPECT_THAT(error({"rl.loss.clip_low=0.1", "rl.credit=grpo"}), HasSubstr("it is 'rl.algorithm' now"));
  EXPECT_THAT(with("grpo", "rl.loss.objective=clip"), HasSubstr("it is 'rl.algorithm' now"));
}

TEST(Assemble, LearningRatesFallOverTheRun) {
  RlConfig rl;
  rl.steps = 5;
  EXPECT_EQ(rl.decay_at(5), 1);
  rl.decay = Decay::kLinear;
  rl.decay_to = 0.2;
  EXPECT_DOUBLE_EQ(rl.decay_at(1), 1);
  EXPECT_DOUBLE_EQ(rl.decay_at(3), 0.6);
  EXPECT_DOUBLE_EQ(rl.decay_at(5), 0.2);
  rl.decay = Decay::kCosine;
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
    auto sampler = config.data.sampler.make(tasks);
    EXPECT_EQ(seams.cases->cases(tasks[0]).size(), on & 1 ? 6u : 1u) << on;
    EXPECT_EQ(seams.order->next({{Stage::kTinyRun, 0, Rule::kDeadline}}).has_value(), !(on & 2)) << on;
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
    Config config;
    config.data.sampler.type = type;
    EXPECT_EQ(config.data.sampler.make(tasks)->next(3).size(), 3u) << type;
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
