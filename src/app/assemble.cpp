// SPDX-License-Identifier: Apache-2.0
#include "app/assemble.h"

#include "base/process/build_paths.h"
#include "base/text.h"
#include "ext/calibrated_timing/calibrated_timing.h"
#include "ext/curriculum/curriculum.h"
#include "ext/multi_input/multi_input.h"

namespace tritonrl {

namespace fs = std::filesystem;

// Extensions register here and nowhere else: without its lines and its folder, one is gone. The last of a seam is what
// with_every_extension takes.
Config::Config() {
  data.sampler.add<curriculum::Gate>("gate", "rests tasks that are always or never solved");
  data.sampler.add<curriculum::Promote>("promote", "one difficulty at a time");
  data.sampler.add<curriculum::Adaptive>("adaptive", "the share of level 2 follows the accuracy on level 1");
  cases.add<multi_input::MultiInput>("multi_input", "other values, seeds, sizes and another precision too");
  cases.choose_last();
  timing.add<calibrated_timing::CalibratedTiming>("calibrated", "reads until the interval is narrow");
  timing.choose_last();
}

VerifySeams make_verify_seams(const Config& config) {
  VerifySeams seams;
  seams.cases = config.cases.make(config.verify.seeds_per_case);
  seams.order = config.stages.make();
  seams.timing = config.timing.make();
  return seams;
}

Config with_every_extension(Config config) {
  config.cases = Config().cases;
  config.cases.choose_last();
  config.stages.choose_last();
  config.timing.choose_last();
  return config;
}

std::unique_ptr<Credit> make_credit(const RlConfig& config) {
  if (config.algorithm == Algorithm::kBestOfN) return make_best_of_n(config.best_of_n);
  if (config.algorithm == Algorithm::kRewardWeighted) return make_reward_weighted(config.reward_weighted);
  return make_advantages(config.advantage);
}

namespace {

TurnRules turn_rules(const Config& config, int64_t turns, StopWhenCorrect stop_when_correct) {
  TurnRules rules;
  rules.turns = turns;
  rules.stop_when_correct = stop_when_correct;
  rules.feedback_chars = config.data.feedback_chars;
  rules.max_prompt_tokens = config.policy.max_prompt_tokens;
  if (turns > 1) rules.prompt = FeedbackPrompt::load(find_data_file(config.data.feedback));
  return rules;
}

}  // namespace

TurnRules rl_turns(const Config& config) { return turn_rules(config, config.rl.turns, config.rl.stop_when_correct); }

TurnRules eval_turns(const Config& config) { return turn_rules(config, config.eval.turns, StopWhenCorrect::kAlways); }

RolloutRules rollout_rules(const Config& config) {
  const RlConfig& rl = config.rl;
  return {rl.steps,     rl.tasks_per_step, rl.samples,       rl.resample_rounds + 1,
          rl.staleness, rl.sampling,       rl_turns(config), rl.stream};
}

LateLimits make_late_limits(const Config& config) {
  const VerifyConfig& verify = config.verify;
  return {config.rl.late,
          {{Stage::kCompile, verify.compile_deadline_s},
           {Stage::kTinyRun, verify.tiny_deadline_s},
           {Stage::kFullRun, verify.full_deadline_s}},
          config.rl.staleness};
}

RewardRules reward_rules(const Config& config) {
  const RlConfig& rl = config.rl;
  RewardRules rules;
  rules.reward = config.reward;
  rules.by_parts = config.reward.shape == RewardShape::kHierarchical && has_advantages(rl.algorithm);
  rules.overlong_weight = rl.overlong == Overlong::kPenalty ? rl.overlong_weight : 0;
  rules.overlong_tokens = rl.overlong_tokens;
  rules.longest_answer = rl.sampling.max_new_tokens;
  rules.gamma = has_advantages(rl.algorithm) ? rl.gamma : 0;
  return rules;
}

void check_choices(const Config& config) {
  make_verify_seams(config);
  rl_turns(config);
  eval_turns(config);
  if (config.rl.steps == 0) return;
  make_credit(config.rl);
  std::vector<Task> one_of_each_level(2);
  for (size_t i = 0; i < 2; ++i) {
    one_of_each_level[i].id = cat(i);
    one_of_each_level[i].level = static_cast<int>(i) + 1;
  }
  config.data.sampler.make(std::move(one_of_each_level));
}

std::string find_data_file(const std::string& name) {
  if (fs::exists(name)) return name;
  fs::path in_source = fs::path(source_dir()) / name;
  if (fs::exists(in_source)) return in_source.string();
  throw usage_error("no such file", name);
}

std::string find_model(const std::string& name) {
  if (fs::is_directory(name)) return name;
  fs::path in_source = fs::path(source_dir()) / name;
  if (fs::is_directory(in_source)) return in_source.string();
  throw usage_error("no such model folder", name,
                    "policy.model names it; ./quickstart.sh or `tritonrl model import` bring the small model in");
}

PolicyConfig find_policy(const Config& config) {
  PolicyConfig policy = config.policy;
  policy.model = find_model(policy.model);
  return policy;
}

}  // namespace tritonrl
