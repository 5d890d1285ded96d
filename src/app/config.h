// SPDX-License-Identifier: Apache-2.0
// The root config: every section of a YAML file, one struct a room. Only the app room sees all of it.
#pragma once

#include <string>

#include "base/config.h"
#include "data/data_config.h"
#include "model/lora.h"
#include "policy/policy.h"
#include "reward/reward.h"
#include "rollout/evaluation.h"
#include "train/credit/credit.h"
#include "train/policy_loss.h"
#include "train/trainer.h"
#include "verify/verifier.h"

namespace tritonrl {

struct RunConfig {
  std::string name = "run";
  std::string folder = "runs";  // The run directory is folder/name.
  int64_t seed = 1;
  std::string start_from;  // Another run directory.

  template <class V>
  void for_each_field(V& v) {
    v("name", name, "name of the run directory");
    v("folder", folder, "where run directories live");
    v("seed", seed, "of adapters, shuffling, dropout and rollouts");
    v("start_from", start_from, "run directory whose tasks, SFT checkpoint and evaluations of it are taken over");
  }
  void validate() const;
};

struct SftConfig : TrainConfig {
  bool enabled = true;

  template <class V>
  void for_each_field(V& v) {
    v("enabled", enabled, "false = start reinforcement learning from the base model");
    TrainConfig::for_each_field(v);
  }
};

struct RlConfig {
  int64_t steps = 1;
  int64_t tasks_per_step = 16;
  int64_t samples = 10;  // N.
  int64_t turns = 1;
  double gamma = 0.4;  // Kevin's.
  std::string stop_when_correct = "untimed";
  std::string credit = "best_of_n";
  BestOfNConfig best_of_n;
  RewardWeightedConfig reward_weighted;
  AdvantageConfig advantage;
  PolicyLossConfig loss;
  std::string overlong = "none";
  int64_t overlong_tokens = 64;
  double overlong_weight = 1;
  int64_t resample_rounds = 0;
  std::string resample_by = "reward";
  std::string stream = "auto";
  int64_t staleness = 0;
  std::string decay = "none";
  double decay_to = 0;
  SamplingConfig sampling;
  TrainConfig train;
  bool audit = false;

  template <class V>
  void for_each_field(V& v) {
    v("steps", steps, "rounds of sample, verify, train; 0 = none");
    v("tasks_per_step", tasks_per_step, "tasks a round");
    v("samples", samples, "answers per task (N); with turns, conversations per task");
    v("turns", turns,
      "answers of a conversation at most; each but the first follows the verdict on the one before (data.feedback)");
    v("gamma", gamma, "credits with advantages: what a later turn's reward counts to the turn before it");
    v.choice("stop_when_correct", stop_when_correct, {"untimed", "never", "always"},
             "a correct answer ends its conversation: where its time was not measured, never (it is to become faster), "
             "or always");
    v.choice("credit", credit, {"best_of_n", "reward_weighted", "reinforce", "rloo", "grpo", "reinforce_pp"},
             "how rewards become training weights");
    v("best_of_n", best_of_n, "");
    v("reward_weighted", reward_weighted, "");
    v("advantage", advantage, "reinforce, rloo, grpo, reinforce_pp: rewards to advantages");
    v("loss", loss, "reinforce, rloo, grpo, reinforce_pp: advantages to a loss");
    v.choice(
        "overlong", overlong, {"none", "penalty"},
        "penalty: answers lose up to overlong_weight over their last overlong_tokens before max_new_tokens (DAPO)");
    v("overlong_tokens", overlong_tokens, "tokens over which the penalty grows");
    v("resample_rounds", resample_rounds,
      "further rounds of tasks in a step while groups whose rewards are all equal leave less than tasks_per_step "
      "(DAPO's "
      "dynamic sampling); 0 = keep every group");
    v.choice(
        "resample_by", resample_by, {"reward", "correct"},
        "what makes a group worth keeping: rewards that differ (without overlong and KL), or right and wrong answers "
        "beside each other (DAPO)");
    v("staleness", staleness,
      "updates that the policy which draws a step's answers may be behind: 0 = none; 1 = the next step's answers are "
      "drawn while this one verifies and trains (one-step off-policy; rollout/rollout_source.h)");
    v.choice("decay", decay, {"none", "linear", "cosine"},
             "how the learning rate falls from the first to the last step of the run, beside the optimizer's schedule");
    v("decay_to", decay_to, "share of it that is left in the end");
    v("overlong_weight", overlong_weight,
      "the largest overlong penalty; DAPO's is half of the rewards' range, which is 0.5 where they lie in [0, 1]");
    v.choice("stream", stream, {"auto", "true", "false"},
             "verify answers while others of the step are sampled, by the same policy; auto = where it is on a GPU (on "
             "the CPU both want the same cores)");
    v("sampling", sampling, "");
    v("train", train, "");
    v("audit", audit,
      "hold everything that was accepted against the full verifier afterwards, and count what it rejects");
  }
  void validate() const;
  // What the learning rate of that step (1-based) is multiplied by.
  double decay_at(int64_t step) const;
};

// Which checkpoints of a run are kept, and what is done with each. The state that a run goes on from is always kept.
struct CheckpointConfig {
  int64_t every_updates = 100;
  int64_t keep_last = 0;
  bool keep_best = false;
  std::string best_by = "training";
  std::string after_save;
  double after_save_wait_s = 600;

  template <class V>
  void for_each_field(V& v) {
    v("every_updates", every_updates,
      "supervised fine-tuning is saved after so many updates, and whenever it is stopped; 0 = only then");
    v("keep_last", keep_last, "checkpoints of the last so many RL steps are kept, and the one of SFT; 0 = of all");
    v("keep_best", keep_best,
      "keep also the checkpoint with the highest mean reward of training (of the rollouts drawn from it, in the step "
      "after it), and name it in state.json and results.json");
    v.choice("best_by", best_by, {"training", "heldout"},
             "what the best is measured by: training, as above, or the share of correct answers on the held-out tasks "
             "(eval.every)");
    v("after_save", after_save,
      "shell command run in the background after each checkpoint, one at a time, with TRITONRL_CHECKPOINT (its "
      "folder), TRITONRL_RUN and TRITONRL_STEP (0 for SFT); its output goes to after_save.log");
    v("after_save_wait_s", after_save_wait_s, "how long a run waits at its end for the last of them");
  }
  void validate() const;
};

// How a GPU's readings are taken and what they amount to (verify/timing_protocol.h).
struct TimingConfig {
  std::string type = "calibrated";
  int64_t readings = 50;
  double half_width = 0.005;

  template <class V>
  void for_each_field(V& v) {
    v("type", type, "timing protocol: plain (five readings, their mean) or an extension's, see app/assemble.cpp");
    v("readings", readings, "calibrated: at least so many readings");
    v("half_width", half_width,
      "calibrated: and until the 95 % interval of the ratio is as narrow as this, relative; 0.03 takes about a tenth "
      "of "
      "the time of 0.005");
  }
};

// On which cases candidates are tried (verify/case_source.h).
struct CasesConfig {
  std::string type = "original";
  std::vector<std::string> list = {"original", "doubled", "reseeded", "larger", "precision"};
  int64_t count = 0;

  template <class V>
  void for_each_field(V& v) {
    v("type", type, "cases of a task: original (as written, and tiny) or an extension's, see app/assemble.cpp");
    v("list", list, "multi_input: the cases, by name");
    v("count", count, "multi_input: how many of the list, from its beginning; 0 = all");
  }
};

// Which stages a candidate goes through (verify/stage_order.h).
struct StagesConfig {
  std::string type = "staged";

  template <class V>
  void for_each_field(V& v) {
    v("type", type,
      "staged (stops at the first stage that fails) or all (runs what can be run; the verdict is the same)");
  }
};

struct Config {
  RunConfig run;
  PolicyConfig policy;
  LoraConfig lora;
  DataConfig data;
  SftConfig sft;
  RlConfig rl;
  CheckpointConfig checkpoint;
  RewardConfig reward;
  VerifyConfig verify;
  CasesConfig cases;
  StagesConfig stages;
  TimingConfig timing;
  EvalConfig eval;

  template <class V>
  void for_each_field(V& v) {
    v("run", run, "the run directory");
    v("policy", policy, "the model and how it generates");
    v("lora", lora, "the adapter");
    v("data", data, "tasks, splits, prompt");
    v("sft", sft, "supervised fine-tuning");
    v("rl", rl, "reinforcement learning");
    v("checkpoint", checkpoint, "what is kept of a run, and a command for each checkpoint");
    v("reward", reward, "from verdict to number");
    v("verify", verify, "the verifier");
    v("cases", cases, "inputs that candidates are tried on");
    v("stages", stages, "order of the verifier's stages");
    v("timing", timing, "timing of candidates on a GPU");
    v("eval", eval, "held-out evaluation");
  }
  void validate() const;
};

}  // namespace tritonrl
