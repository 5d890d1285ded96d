// SPDX-License-Identifier: Apache-2.0
#include "app/assemble.h"

#include <algorithm>

#include "base/build_paths.h"
#include "base/text.h"
#include "ext/calibrated_timing/calibrated_timing.h"
#include "ext/curriculum/curriculum.h"
#include "ext/multi_input/multi_input.h"
#include "ext/staged_evaluation/staged_evaluation.h"

namespace tritonrl {

namespace fs = std::filesystem;

std::unique_ptr<TaskSampler> make_task_sampler(const SamplerConfig& config, std::vector<Task> tasks) {
  if (config.type == "fixed_mix") return std::make_unique<FixedMix>(std::move(tasks), config);
  if (config.type == "adaptive") return std::make_unique<curriculum::Adaptive>(std::move(tasks), config);
  if (config.type == "gate") return std::make_unique<curriculum::Gate>(std::move(tasks), config);
  if (config.type == "promote") return std::make_unique<curriculum::Promote>(std::move(tasks), config);
  throw usage_error("sampler type '" + config.type + "' is not known", "data.sampler.type",
                    "known: fixed_mix, adaptive, gate, promote");
}

std::shared_ptr<const CaseSource> make_cases(const CasesConfig& config, int64_t seeds_per_case) {
  if (config.type == "original") return std::make_shared<OriginalCases>(seeds_per_case);
  if (config.type == "multi_input") {
    return std::make_shared<multi_input::MultiInput>(config.list, config.count, seeds_per_case);
  }
  throw usage_error("cases type '" + config.type + "' is not known", "cases.type", "known: original, multi_input");
}

std::shared_ptr<const StageOrder> make_stages(const StagesConfig& config) {
  if (config.type == "staged") return std::make_shared<staged_evaluation::Staged>();
  if (config.type == "all") return std::make_shared<EveryStage>();
  throw usage_error("stages type '" + config.type + "' is not known", "stages.type", "known: staged, all");
}

std::shared_ptr<const TimingProtocol> make_timing(const TimingConfig& config) {
  if (config.type == "plain") return std::make_shared<PlainMean>();
  if (config.type == "calibrated") {
    if (config.readings < 10 || config.readings > 400) throw usage_error("timing.readings must lie in [10, 400]");
    if (!(config.half_width > 0 && config.half_width <= 0.5))
      throw usage_error("timing.half_width must lie in (0, 0.5]");
    calibrated_timing::Options options;
    options.least_readings = config.readings;
    options.least_slow_readings = std::min(options.least_slow_readings, config.readings);
    options.readings_per_place = std::clamp<int64_t>(config.readings / 5, 2, options.readings_per_place);
    options.half_width = config.half_width;
    options.short_half_width = std::max(options.short_half_width, config.half_width);
    return std::make_shared<calibrated_timing::CalibratedTiming>(options);
  }
  throw usage_error("timing type '" + config.type + "' is not known", "timing.type", "known: plain, calibrated");
}

VerifySeams make_verify_seams(const Config& config) {
  VerifySeams seams;
  seams.cases = make_cases(config.cases, config.verify.seeds_per_case);
  seams.order = make_stages(config.stages);
  seams.timing = make_timing(config.timing);
  return seams;
}

Config with_every_extension(Config config) {
  config.cases = CasesConfig();
  config.cases.type = "multi_input";
  config.stages.type = "staged";
  config.timing.type = "calibrated";
  return config;
}

std::unique_ptr<Credit> make_credit(const RlConfig& config) {
  if (config.credit == "best_of_n") return make_best_of_n(config.best_of_n);
  if (config.credit == "reward_weighted") return make_reward_weighted(config.reward_weighted);
  if (config.credit == "reinforce") return make_reinforce(config.advantage);
  if (config.credit == "rloo") return make_rloo(config.advantage);
  if (config.credit == "grpo") return make_grpo(config.advantage);
  if (config.credit == "reinforce_pp") return make_reinforce_pp(config.advantage);
  throw usage_error("credit '" + config.credit + "' is not known", "rl.credit",
                    "known: best_of_n, reward_weighted, reinforce, rloo, grpo, reinforce_pp");
}

bool has_advantages(const RlConfig& config) {
  return config.credit != "best_of_n" && config.credit != "reward_weighted";
}

namespace {

TurnRules turn_rules(const Config& config, int64_t turns, const std::string& stop_when_correct) {
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

TurnRules eval_turns(const Config& config) { return turn_rules(config, config.eval.turns, "always"); }

RolloutRules rollout_rules(const Config& config) {
  const RlConfig& rl = config.rl;
  return {rl.steps,     rl.tasks_per_step, rl.samples,       rl.resample_rounds + 1,
          rl.staleness, rl.sampling,       rl_turns(config), rl.stream};
}

RewardRules reward_rules(const Config& config) {
  const RlConfig& rl = config.rl;
  RewardRules rules;
  rules.reward = config.reward;
  rules.by_parts = config.reward.shape == "hierarchical" && has_advantages(rl);
  rules.overlong_weight = rl.overlong == "penalty" ? rl.overlong_weight : 0;
  rules.overlong_tokens = rl.overlong_tokens;
  rules.longest_answer = rl.sampling.max_new_tokens;
  rules.gamma = has_advantages(rl) ? rl.gamma : 0;
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
  make_task_sampler(config.data.sampler, std::move(one_of_each_level));
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

fs::path plotly_script() {
  fs::path script = fs::path(source_dir()) / ".deps/pkg/plotly/plotly/package_data/plotly.min.js";
  return fs::exists(script) ? script : fs::path();
}

}  // namespace tritonrl
