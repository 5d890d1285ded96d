// SPDX-License-Identifier: Apache-2.0
#include "app/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tritonrl {

void RunConfig::validate() const {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    throw usage_error("name must be one plain folder name");
  }
}

void RlConfig::choose(Algorithm chosen) {
  const bool imitates = !has_advantages(chosen);
  algorithm = chosen;
  best_of_n = {};
  reward_weighted = {};
  advantage = {};
  loss = {};
  overlong = Overlong::kNone;
  overlong_weight = 1;
  resample_rounds = 0;
  resample_by = ResampleBy::kReward;
  samples = 8;
  train.epochs = 1;
  train.updates = imitates ? 0 : 1;
  train.optimizer.schedule = Schedule::kConstant;
  switch (chosen) {
    case Algorithm::kBestOfN:  // N, K and two epochs as published, but of answers that are verified correct.
      samples = 10;
      train.epochs = 2;
      train.optimizer.schedule = Schedule::kCosine;
      break;
    case Algorithm::kRewardWeighted:  // What fails at compiling has 0.1, behind it at least 0.2.
      reward_weighted.reward_above = 0.15;
      break;
    case Algorithm::kReinforce:
      advantage.formula = AdvantageFormula::kReinforce;
      loss.objective = PolicyObjective::kPlain;
      loss.normalise = Normalise::kTokens;
      break;
    case Algorithm::kRloo:  // The ratio knows no bound for answers below the baseline: one update. TRL has kl 0.05.
      advantage.formula = AdvantageFormula::kRloo;
      loss.ratio = Ratio::kAnswer;
      break;
    case Algorithm::kGrpo:  // One update, so that the clip does not bind. DeepSeekMath has kl 0.04.
      break;
    case Algorithm::kDrGrpo:
      advantage.scale = Scale::kNone;
      loss.normalise = Normalise::kConstant;
      break;
    case Algorithm::kDapo:
      loss.clip_high = 0.28;
      loss.normalise = Normalise::kTokens;
      overlong = Overlong::kPenalty;
      overlong_weight = 0.5;
      resample_rounds = 3;
      resample_by = ResampleBy::kCorrect;
      train.updates = 16;
      break;
    case Algorithm::kGspo:  // Clipped where means over an answer lie.
      loss.ratio = Ratio::kSequence;
      loss.clip_low = 3e-4;
      loss.clip_high = 4e-4;
      train.updates = 4;
      break;
    case Algorithm::kCispo:  // Without the dynamic sampling and length penalty that MiniMax-M1 adds.
      loss.objective = PolicyObjective::kCispo;
      loss.clip_high = 4;
      loss.normalise = Normalise::kTokens;
      train.updates = 6;
      break;
    case Algorithm::kReinforcePp:
      advantage.formula = AdvantageFormula::kReinforcePp;
      loss.normalise = Normalise::kTokens;
      loss.kl = 0.01;
      loss.kl_estimator = KlEstimator::kK2;
      break;
  }
}

void RlConfig::validate() const {
  const char* name = name_of(algorithm);
  if (steps < 0 || tasks_per_step < 1 || samples < 1)
    throw usage_error("tasks_per_step and samples must be at least 1");
  if (overlong_tokens < 1 || resample_rounds < 0) {
    throw usage_error("overlong_tokens must be positive, resample_rounds not negative");
  }
  if (overlong_weight < 0) throw usage_error("overlong_weight must not be negative");
  if (staleness < 0 || staleness > 1) throw usage_error("staleness is 0 or 1");
  if (staleness > 0 && resample_rounds > 0) {
    throw usage_error("staleness draws a step's answers before the last one's are judged, resample_rounds after", "",
                      "one of them must be 0");
  }
  if (turns < 1) throw usage_error("turns must be at least 1");
  if (gamma < 0 || gamma > 1) throw usage_error("gamma is a discount: it must lie in [0, 1]");
  if (compares_answers(algorithm) && samples < 2) {
    throw usage_error(cat("algorithm: ", name, " compares the answers to a task: samples must be at least 2"));
  }
  bool imitates = !has_advantages(algorithm);
  if (!imitates && (sampling.top_k > 0 || sampling.top_p < 1 || sampling.temperature <= 0)) {
    throw usage_error(cat("algorithm: ", name, " needs answers drawn from the policy itself"), "",
                      "sampling: no top_k, no top_p, and a temperature above 0");
  }
  if (staleness > 0 && !imitates && loss.correction == Correction::kNone) {
    throw usage_error("with staleness answers come from an older policy than the one they train", "",
                      "loss.correction: token weighs them accordingly");
  }
  bool one_update = train.epochs == 1 && (train.updates == 1 || (train.updates == 0 && train.batch_size == 0));
  if (!imitates && loss.objective == PolicyObjective::kPlain && !one_update) {
    throw usage_error(cat("algorithm: ", name, " knows no importance ratio: a second update would be off-policy"), "",
                      "rl.train: epochs 1 and updates 1; or an algorithm that clips the ratio (rloo, grpo ...)");
  }
  if (!imitates && train.optimizer.schedule != Schedule::kConstant) {
    throw usage_error(
        cat("algorithm: ", name, " with schedule: ", name_of(train.optimizer.schedule),
            " begins each step with a fresh optimizer, whose first updates follow the gradient's sign only"),
        "", "rl.train.optimizer.schedule: constant keeps it over the steps; rl.decay lowers the rate");
  }
  if (decay_to < 0 || decay_to > 1) throw usage_error("decay_to is a share: it must lie in [0, 1]");
  if (algorithm == Algorithm::kBestOfN && best_of_n.keep > samples) {
    throw usage_error(cat("best_of_n.keep = ", best_of_n.keep, " exceeds samples = ", samples), "",
                      "keep at most as many as are sampled");
  }
}

double RlConfig::decay_at(int64_t step) const {
  if (decay == Decay::kNone || steps < 2) return 1;
  double progress = static_cast<double>(step - 1) / static_cast<double>(steps - 1);
  double left = decay == Decay::kLinear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return decay_to + (1 - decay_to) * left;
}

void CheckpointConfig::validate() const {
  if (keep_last < 0) throw usage_error("keep_last must not be negative");
  if (after_save_wait_s < 0) throw usage_error("after_save_wait_s must not be negative");
}

void Config::validate() const {
  if (checkpoint.keep_best && checkpoint.best_by == BestBy::kHeldout && eval.every == 0) {
    throw usage_error("checkpoint.best_by: heldout without evaluations to choose by", "", "eval.every: 5, say");
  }
  if (!sft.enabled && rl.steps == 0) throw usage_error("nothing to do: sft is off and rl.steps is 0");
  if (data.synth.products == graphs::ProductStyle::kTf32 && verify.tolerance != Tolerance::kTf32) {
    throw usage_error(
        cat("data.synth.products: tf32 makes solutions that verify.tolerance: ", name_of(verify.tolerance), " rejects"),
        "", "verify.tolerance: tf32, or data.synth.products: ieee");
  }
  if (data.train.stream > 0 && (sft.epochs > 1 || sft.updates > 0 || sft.max_steps > 0 || sft.batch_size < 1)) {
    throw usage_error("data.train.stream gives every example once, sft.batch_size at a time",
                      "sft.epochs, sft.updates, sft.max_steps, sft.batch_size",
                      "leave the first three as they are by default; data.train.stream says how long training lasts");
  }
  int64_t needed = policy.max_prompt_tokens + eval.sampling.max_new_tokens;
  int64_t rollout = policy.max_prompt_tokens + rl.sampling.max_new_tokens;
  if (rl.steps > 0 && has_advantages(rl.algorithm) && rl.train.max_tokens < rollout) {
    throw usage_error(cat("rl.train.max_tokens = ", rl.train.max_tokens,
                          " leaves out the longest answers, whose length then goes unpunished"),
                      "", cat("policy.max_prompt_tokens + rl.sampling.max_new_tokens = ", rollout));
  }
  needed = std::max({needed, rollout, rl.steps > 0 ? rl.train.max_tokens : 0});
  if (sft.max_tokens > 8192 || needed > 8192) {
    throw usage_error("sequences beyond 8192 tokens are not supported", "", "lower max_tokens or max_new_tokens");
  }
}

}  // namespace tritonrl
