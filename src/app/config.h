// SPDX-License-Identifier: Apache-2.0
// The root config: every section of a YAML file, one struct a room. Only the app room sees all of it.
#pragma once

#include <string>

#include "base/config_choice.h"
#include "data/data_config.h"
#include "model/lora.h"
#include "policy/policy.h"
#include "reward/reward.h"
#include "rollout/conversation.h"
#include "rollout/evaluation.h"
#include "rollout/late_limits.h"
#include "train/algorithm.h"
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

enum class Overlong { kNone, kPenalty };
constexpr auto enum_names(Overlong) { return std::array{"none", "penalty"}; }
enum class ResampleBy { kReward, kCorrect };
constexpr auto enum_names(ResampleBy) { return std::array{"reward", "correct"}; }
enum class Decay { kNone, kLinear, kCosine };
constexpr auto enum_names(Decay) { return std::array{"none", "linear", "cosine"}; }

// `algorithm` chooses the defaults of all that follows, and which keys there are: what an algorithm has no use for
// cannot be written.
struct RlConfig {
  Algorithm algorithm = Algorithm::kBestOfN;
  int64_t steps = 1;
  int64_t tasks_per_step = 16;
  int64_t samples = 10;  // N.
  int64_t turns = 1;
  double gamma = 0.4;  // Kevin's.
  StopWhenCorrect stop_when_correct = StopWhenCorrect::kUntimed;
  BestOfNConfig best_of_n;
  RewardWeightedConfig reward_weighted;
  AdvantageConfig advantage;
  PolicyLossConfig loss;
  Overlong overlong = Overlong::kNone;
  int64_t overlong_tokens = 64;
  double overlong_weight = 1;
  int64_t resample_rounds = 0;
  ResampleBy resample_by = ResampleBy::kReward;
  Switch stream = Switch::kAuto;
  LateConfig late;
  int64_t staleness = 0;
  Decay decay = Decay::kNone;
  double decay_to = 0;
  SamplingConfig sampling;
  TrainConfig train;
  bool audit = false;

  RlConfig() { choose(algorithm); }
  // Sets what the algorithm's publication (or our measurements) say, and leaves the rest. docs/algorithms.md has them.
  void choose(Algorithm chosen);

  template <class V>
  void for_each_field(V& v) {
    v("algorithm", algorithm, "chooses the defaults of what follows; train --explain ALGORITHM prints them");
    v.renamed("credit", "rl.algorithm");
    v.then([&] { choose(algorithm); });
    v("steps", steps, "rounds of sample, verify, train; 0 = none");
    v("tasks_per_step", tasks_per_step, "tasks a round");
    v("samples", samples, "answers per task (N); with turns, conversations per task");
    v("staleness", staleness,
      "updates that the policy which draws a step's answers may be behind: 0 = none; 1 = the next step's answers are "
      "drawn while this one verifies and trains (one-step off-policy; rollout/rollout_source.h)");
    v.then([&] { loss.correction = staleness > 0 ? Correction::kToken : Correction::kNone; });
    v("turns", turns,
      "answers of a conversation at most; each but the first follows the verdict on the one before (data.feedback)");
    v("stop_when_correct", stop_when_correct,
      "a correct answer ends its conversation: where its time was not measured, never (it is to become faster), or "
      "always");
    v.when(algorithm == Algorithm::kBestOfN, "rl.algorithm: best_of_n", [&] { v("best_of_n", best_of_n, ""); });
    v.when(algorithm == Algorithm::kRewardWeighted, "rl.algorithm: reward_weighted",
           [&] { v("reward_weighted", reward_weighted, ""); });
    v.when(has_advantages(algorithm), "algorithms with advantages (not best_of_n, reward_weighted)", [&] {
      v("advantage", advantage, "rewards to advantages");
      v("loss", loss, "advantages to a loss");
      v("gamma", gamma, "what a later turn's reward counts to the turn before it");
    });
    v("overlong", overlong,
      "penalty: answers lose up to overlong_weight over their last overlong_tokens before max_new_tokens (DAPO)");
    v("overlong_tokens", overlong_tokens, "tokens over which the penalty grows");
    v("overlong_weight", overlong_weight,
      "the largest overlong penalty; DAPO's is half of the rewards' range, which is 0.5 where they lie in [0, 1]");
    v.when(compares_answers(algorithm), "algorithms that compare the answers to one task", [&] {
      v("resample_rounds", resample_rounds,
        "further rounds of tasks in a step while groups whose rewards are all equal leave less than tasks_per_step "
        "(DAPO's dynamic sampling); 0 = keep every group");
      v("resample_by", resample_by,
        "what makes a group worth keeping: rewards that differ (without overlong and KL), or right and wrong answers "
        "beside each other (DAPO)");
    });
    v("decay", decay,
      "how the learning rate falls from the first to the last step of the run, beside the optimizer's schedule");
    v("decay_to", decay_to, "share of it that is left in the end");
    v("stream", stream,
      "verify answers while others of the step are sampled, by the same policy; auto = where it is on a GPU (on the "
      "CPU both want the same cores)");
    v("late", late, "when a candidate takes too long, by what others took (rollout/late_limits.h)");
    v("sampling", sampling, "");
    v("train", train, "");
    v("audit", audit,
      "hold everything that was accepted against the full verifier afterwards, and count what it rejects");
  }
  void validate() const;
  // What the learning rate of that step (1-based) is multiplied by.
  double decay_at(int64_t step) const;
};

enum class BestBy { kTraining, kHeldout };
constexpr auto enum_names(BestBy) { return std::array{"training", "heldout"}; }

// Which checkpoints of a run are kept, and what is done with each. The state that a run continues from is always kept.
struct CheckpointConfig {
  int64_t every_updates = 100;
  int64_t keep_last = 0;
  bool keep_best = false;
  BestBy best_by = BestBy::kTraining;
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
    v("best_by", best_by,
      "what the best is measured by: training, as above, or the share of correct answers on the held-out tasks "
      "(eval.every)");
    v("after_save", after_save,
      "shell command run in the background after each checkpoint, one at a time, with TRITONRL_CHECKPOINT (its "
      "folder), TRITONRL_RUN and TRITONRL_STEP (0 for SFT); its output goes to after_save.log");
    v("after_save_wait_s", after_save_wait_s, "how long a run waits at its end for the last of them");
  }
  void validate() const;
};

// The seams of the verifier, as core has them; extensions add theirs (app/assemble.cpp), and may become the default.
struct TimingChoice : ConfigChoice<TimingProtocol> {
  TimingChoice() : ConfigChoice("plain") { add<PlainMean>("plain", "five readings, their mean"); }
};
struct CasesChoice : ConfigChoice<CaseSource, int64_t> {
  CasesChoice() : ConfigChoice("original") { add<OriginalCases>("original", "as the task is written, and tiny"); }
};
struct StagesChoice : ConfigChoice<StageOrder> {
  StagesChoice() : ConfigChoice("staged") {
    add<EveryStage>("all", "runs what can be run");
    add<Staged>("staged", "stops at the first stage that fails");
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
  CasesChoice cases;
  StagesChoice stages;
  TimingChoice timing;
  EvalConfig eval;

  Config();  // With every extension's sections: app/assemble.cpp.

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
    v("cases", cases, "inputs that candidates are tried on (verify/execute/case_source.h)");
    v("stages", stages, "order of the verifier's stages (verify/stage_order.h); the verdict is the same");
    v("timing", timing, "timing of candidates on a GPU (verify/execute/timing_protocol.h)");
    v("eval", eval, "held-out evaluation");
  }
  void validate() const;
};

}  // namespace tritonrl
