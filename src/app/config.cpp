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

void RlConfig::validate() const {
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
  if ((credit == "rloo" || credit == "grpo" || credit == "reinforce_pp") && samples < 2) {
    throw usage_error(cat("credit: ", credit, " compares the answers to a task: samples must be at least 2"));
  }
  bool imitates = credit == "best_of_n" || credit == "reward_weighted";
  if (!imitates && (sampling.top_k > 0 || sampling.top_p < 1 || sampling.temperature <= 0)) {
    throw usage_error(cat("credit: ", credit, " needs answers drawn from the policy itself"), "",
                      "sampling: no top_k, no top_p, and a temperature above 0");
  }
  if (staleness > 0 && !imitates && loss.correction == "none") {
    throw usage_error("with staleness answers come from an older policy than the one they train", "",
                      "loss.correction: token weighs them accordingly");
  }
  if (imitates && loss.kl > 0) {
    throw usage_error(cat("loss.kl is for credits with advantages, credit: ", credit, " imitates"));
  }
  bool one_update = train.epochs == 1 && (train.updates == 1 || (train.updates == 0 && train.batch_size == 0));
  if (!imitates && loss.objective == "plain" && !one_update) {
    throw usage_error("loss.objective: plain knows no importance ratio: a second update would be off-policy", "",
                      "rl.train: epochs 1 and updates 1; or loss.objective: clip");
  }
  if (!imitates && train.optimizer.schedule != "constant") {
    throw usage_error(
        cat("credit: ", credit, " with schedule: ", train.optimizer.schedule,
            " begins each step with a fresh optimizer, whose first updates follow the gradient's sign only"),
        "", "rl.train.optimizer.schedule: constant keeps it over the steps; rl.decay lowers the rate");
  }
  if (decay_to < 0 || decay_to > 1) throw usage_error("decay_to is a share: it must lie in [0, 1]");
  if (resample_rounds > 0 && (imitates || credit == "reinforce")) {
    throw usage_error(cat("resample_rounds leaves out groups that teach credit: ", credit, " something"));
  }
  if (credit == "best_of_n" && best_of_n.keep > samples) {
    throw usage_error(cat("best_of_n.keep = ", best_of_n.keep, " exceeds samples = ", samples), "",
                      "keep at most as many as are sampled");
  }
}

double RlConfig::decay_at(int64_t step) const {
  if (decay == "none" || steps < 2) return 1;
  double progress = static_cast<double>(step - 1) / static_cast<double>(steps - 1);
  double left = decay == "linear" ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return decay_to + (1 - decay_to) * left;
}

void CheckpointConfig::validate() const {
  if (keep_last < 0) throw usage_error("keep_last must not be negative");
  if (after_save_wait_s < 0) throw usage_error("after_save_wait_s must not be negative");
}

const MovedKeys& Config::moved_keys() {
  static const MovedKeys moved = {
      {"data.graphs", "'data.synth'"},
      {"data.synth.families", "'data.synth.operators', for example [elementwise, softmax]"},
      {"data.synth.max_steps", "'data.synth.max_nodes'"},
      {"data.synth_level1", "'data.split' (tasks are made until every split has its count)"},
      {"data.synth_level2", "'data.split' (tasks are made until every split has its count)"},
  };
  return moved;
}

void Config::validate() const {
  if (checkpoint.keep_best && checkpoint.best_by == "heldout" && eval.every == 0) {
    throw usage_error("checkpoint.best_by: heldout without evaluations to choose by", "", "eval.every: 5, say");
  }
  if (!sft.enabled && rl.steps == 0) throw usage_error("nothing to do: sft is off and rl.steps is 0");
  int64_t needed = policy.max_prompt_tokens + eval.sampling.max_new_tokens;
  int64_t rollout = policy.max_prompt_tokens + rl.sampling.max_new_tokens;
  bool imitates = rl.credit == "best_of_n" || rl.credit == "reward_weighted";
  if (rl.steps > 0 && !imitates && rl.train.max_tokens < rollout) {
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
