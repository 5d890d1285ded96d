// SPDX-License-Identifier: Apache-2.0
// The losses of policy-gradient algorithms, as functions of log-probabilities, with their derivatives.
//
// For a token of an answer let l = its log-probability now, o = that of the policy the update began with ("old"), A its
// advantage, and r by `ratio`
//   token     exp(l - o)
//   sequence  exp(mean over the answer of (l - o)), for all of its tokens: GSPO (Zheng et al. 2025)
//   answer    exp(sum over the answer of (l - o)), the ratio of the answers' probabilities: RLOO (Ahmadian et al. 2024)
// The token's loss is, by `objective`,
//   clip   -min(r A, clamp(r, 1 - clip_low, 1 + clip_high) A): PPO (Schulman et al. 2017), GRPO (Shao et al. 2024); a
//          larger clip_high is DAPO's (Yu et al. 2025). ratio_cap d > 0: the first r is min(r, d). dual_clip c > 1: not
//          above -c A where A < 0 (Ye et al. 2020)
//   cispo  -stop_gradient(min(r, 1 + clip_high)) A l: MiniMax-M1 (2025)
//   plain  -A l: REINFORCE (Williams 1992)
// times the correction for rollouts drawn by another policy than "old" (below), plus kl * KL to the reference policy,
// minus entropy * (entropy of the next token). With f = log p_reference - l the KL estimates are Schulman's
//   k1 -f,   k2 f^2 / 2,   k3 exp(f) - f - 1,
// and with kl_ratio they are multiplied by r, which makes k3's gradient that of the KL (DeepSeek-V3.2, 2025).
// The tokens of one update are weighed by
//   sequence  1 / (answers * this answer's tokens): GRPO
//   tokens    1 / (all tokens): DAPO, and PPO as usually written
//   constant  1 / (answers * longest answer allowed): Dr.GRPO (Liu et al. 2025)
//   answers   1 / answers: an answer's loss is the sum of its tokens'
//
// Correction: rollouts come from another program than the trainer's (merged weights, another rounding), so
// w = exp(o - log-probability at sampling) is not 1. token / sequence: w of the token / the product over the answer,
// clamped to [correction_floor, correction_cap] (truncated importance sampling); correction_mask: 0 outside of that
// instead. veto: an answer with a token whose w < veto has no policy loss.
//
// All of it is held to TRL's losses and gradients (tests/golden/train).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"

namespace tritonrl {

enum class PolicyObjective { kClip, kCispo, kPlain };
constexpr auto enum_names(PolicyObjective) { return std::array{"clip", "cispo", "plain"}; }
enum class Ratio { kToken, kSequence, kAnswer };
constexpr auto enum_names(Ratio) { return std::array{"token", "sequence", "answer"}; }
enum class Normalise { kSequence, kTokens, kConstant, kAnswers };
constexpr auto enum_names(Normalise) { return std::array{"sequence", "tokens", "constant", "answers"}; }
enum class KlIn { kLoss, kReward };
constexpr auto enum_names(KlIn) { return std::array{"loss", "reward"}; }
enum class KlEstimator { kK1, kK2, kK3 };
constexpr auto enum_names(KlEstimator) { return std::array{"k1", "k2", "k3"}; }
enum class Correction { kNone, kToken, kSequence };
constexpr auto enum_names(Correction) { return std::array{"none", "token", "sequence"}; }

struct PolicyLossConfig {
  PolicyObjective objective = PolicyObjective::kClip;  // No key: it comes with the algorithm, and keys with it.
  Ratio ratio = Ratio::kToken;
  double clip_low = 0.2, clip_high = 0.2;
  double ratio_cap = 0;
  double dual_clip = 0;
  Normalise normalise = Normalise::kSequence;
  double kl = 0;
  KlIn kl_in = KlIn::kLoss;
  KlEstimator kl_estimator = KlEstimator::kK3;
  bool kl_ratio = false;
  double entropy = 0;
  Correction correction = Correction::kNone;
  double correction_floor = 0, correction_cap = 2;
  bool correction_mask = false;
  double veto = 0;

  template <class V>
  void for_each_field(V& v) {
    v.renamed("objective", "rl.algorithm");
    const char* clips = "algorithms that clip the importance ratio";
    v.when(objective == PolicyObjective::kClip, clips, [&] {
      v("ratio", ratio, "importance ratio of each token, its mean over the answer (GSPO), or the answer's (RLOO)");
      v("clip_low", clip_low, "the ratio counts from 1 - clip_low");
    });
    v.when(objective != PolicyObjective::kPlain, "algorithms with an importance ratio",
           [&] { v("clip_high", clip_high, "the ratio counts up to 1 + clip_high"); });
    v.when(objective == PolicyObjective::kClip, clips, [&] {
      v("ratio_cap", ratio_cap, "largest ratio where the clamp does not bind; 0 = none");
      v("dual_clip", dual_clip, "bound c > 1 of the loss for negative advantages; 0 = none");
    });
    v("normalise", normalise, "how tokens are weighed in the mean");
    v("kl", kl, "weight of the KL divergence to the policy that RL began with; 0 = off");
    v("kl_in", kl_in, "a term of the loss, or off each answer's score (train/kl_reward.h)");
    v("kl_estimator", kl_estimator, "Schulman's estimators");
    v("kl_ratio", kl_ratio, "multiply the estimate by the importance ratio");
    v("entropy", entropy, "weight of the entropy bonus");
    v("correction", correction, "importance weights for rollouts whose log-probabilities are not the trainer's");
    v("correction_floor", correction_floor, "their least value");
    v("correction_cap", correction_cap, "their largest value");
    v("correction_mask", correction_mask, "drop what lies outside of these instead of truncating");
    v("veto", veto, "drop answers with a token whose importance weight is below; 0 = none");
  }
  void validate() const;
};

// Schulman's estimators of KL(policy || reference) from one token of the policy; f = log reference - log policy.
double kl_estimate(KlEstimator estimator, double f);

// One answer, an entry a token. All spans but `reference` have the same length; reference is empty when kl is 0.
struct AnswerTerms {
  std::span<const float> log_probs, old_log_probs, sampled_log_probs, advantages, reference;
};

// What a batch's losses tell; sums over tokens, of policies as they were when the loss was computed.
struct PolicyLossMetrics {
  int64_t tokens = 0, answers = 0;
  int64_t clipped_low = 0, clipped_high = 0;  // The clamp binds: gradient 0 (clip) or a cut weight (cispo).
  double ratio = 0, ratio_max = 0;
  double old_k1 = 0, old_k3 = 0;      // KL(old, now).
  double reference_kl = 0;            // By kl_estimator.
  double sampled_difference = 0;      // |old - sampled|.
  double sampled_difference_max = 0;  // Largest of them.
  int64_t corrected = 0, vetoed = 0;  // Tokens with a truncated or masked weight; answers.
  double entropy = 0;

  void add(const PolicyLossMetrics& other);
};

// Adds d loss / d l to `gradient` (one a token) and returns the answer's loss; every token weighs `weight`. Entropy is
// not in it. REQUIRES: at least one token.
double policy_loss(const PolicyLossConfig& config, const AnswerTerms& terms, double weight, std::span<double> gradient,
                   PolicyLossMetrics* metrics);

// The weight of the tokens of an answer of `tokens` tokens in an update of `answers` answers with `all_tokens` tokens.
double token_weight(const PolicyLossConfig& config, int64_t tokens, int64_t answers, int64_t all_tokens,
                    int64_t longest_allowed);

}  // namespace tritonrl
