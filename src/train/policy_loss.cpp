// SPDX-License-Identifier: Apache-2.0
#include "train/policy_loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

double kl_estimate(KlEstimator estimator, double f) {
  if (estimator == KlEstimator::kK1) return -f;
  return estimator == KlEstimator::kK2 ? f * f / 2 : std::exp(f) - f - 1;
}

void PolicyLossConfig::validate() const {
  if (clip_low < 0 || clip_low > 1 || clip_high < 0) throw usage_error("clip_low is in [0, 1], clip_high not negative");
  if (ratio_cap < 0 || kl < 0 || veto < 0) throw usage_error("ratio_cap, kl and veto must not be negative");
  if (dual_clip != 0 && dual_clip <= 1) throw usage_error("dual_clip must be above 1 (or 0 for none)");
  if (kl > 0 && kl_in == KlIn::kReward && kl_estimator != KlEstimator::kK1) {
    throw usage_error(cat("kl_in: reward with kl_estimator: ", name_of(kl_estimator)), "",
                      "k1: as a factor of the score function k2 and k3 hardly pull towards the reference "
                      "(train/kl_reward.h)");
  }
  if (kl > 0 && kl_in == KlIn::kLoss && kl_estimator == KlEstimator::kK1 && !kl_ratio) {
    throw usage_error("kl_estimator: k1 has no gradient on average without kl_ratio", "",
                      "k2 or k3, or kl_ratio: true");
  }
  if (correction_cap < 1 || correction_floor < 0 || correction_floor > 1) {
    throw usage_error("correction_cap must be at least 1, correction_floor in [0, 1]");
  }
}

void PolicyLossMetrics::add(const PolicyLossMetrics& o) {
  tokens += o.tokens, answers += o.answers;
  clipped_low += o.clipped_low, clipped_high += o.clipped_high;
  ratio += o.ratio, ratio_max = std::max(ratio_max, o.ratio_max);
  old_k1 += o.old_k1, old_k3 += o.old_k3, reference_kl += o.reference_kl;
  sampled_difference += o.sampled_difference;
  sampled_difference_max = std::max(sampled_difference_max, o.sampled_difference_max);
  corrected += o.corrected, vetoed += o.vetoed;
  entropy += o.entropy;
}

namespace {

constexpr double kMostLogRatio = 20;  // A sum over an answer may overflow.

struct Term {
  double loss = 0, slope = 0;  // slope: d loss / d r.
};

Term clipped(const PolicyLossConfig& config, double r, double a, PolicyLossMetrics* metrics) {
  double low = 1 - config.clip_low, high = 1 + config.clip_high;
  bool capped = config.ratio_cap > 0 && r > config.ratio_cap;
  double free = (capped ? config.ratio_cap : r) * a, bound = std::clamp(r, low, high) * a;
  metrics->clipped_low += r < low && a < 0;
  metrics->clipped_high += r > high && a > 0;
  Term term{-free, capped ? 0 : -a};
  if (bound < free) term = {-bound, r < low || r > high ? 0 : -a};
  if (config.dual_clip > 0 && a < 0 && term.loss > -config.dual_clip * a) term = {-config.dual_clip * a, 0};
  return term;
}

// Importance weights of an answer's tokens against the policy that drew it.
std::vector<double> corrections(const PolicyLossConfig& config, const AnswerTerms& t, PolicyLossMetrics* metrics) {
  size_t n = t.log_probs.size();
  std::vector<double> weights(n, 1.0);
  double sum = 0, least = 0;
  for (size_t i = 0; i < n; ++i) {
    double difference = static_cast<double>(t.old_log_probs[i]) - t.sampled_log_probs[i];
    metrics->sampled_difference += std::abs(difference);
    metrics->sampled_difference_max = std::max(metrics->sampled_difference_max, std::abs(difference));
    sum += difference;
    least = std::min(least, difference);
    weights[i] = difference;
  }
  const bool corrects = config.correction != Correction::kNone;
  bool vetoed = config.veto > 0 && std::exp(least) < config.veto;
  metrics->vetoed += vetoed;
  for (double& w : weights) {
    w = !corrects ? 1.0 : std::exp(config.correction == Correction::kSequence ? sum : w);
    double kept = std::clamp(w, config.correction_floor, config.correction_cap);
    metrics->corrected += corrects && kept != w;
    if (corrects && kept != w) w = config.correction_mask ? 0 : kept;
    if (vetoed) w = 0;
  }
  return weights;
}

}  // namespace

double policy_loss(const PolicyLossConfig& config, const AnswerTerms& t, double weight, std::span<double> gradient,
                   PolicyLossMetrics* metrics) {
  size_t n = t.log_probs.size();
  CHECK(n > 0 && t.old_log_probs.size() == n && t.sampled_log_probs.size() == n && t.advantages.size() == n &&
        gradient.size() == n)
      << "an answer's terms are of different lengths";
  CHECK(config.kl == 0 || t.reference.size() == n) << "no reference";
  std::vector<double> correction = corrections(config, t, metrics);
  bool common = config.ratio != Ratio::kToken;  // One ratio for all tokens, a function of all of them.
  double log_ratio = 0, loss = 0, common_slope = 0;
  for (size_t i = 0; i < n; ++i) log_ratio += static_cast<double>(t.log_probs[i]) - t.old_log_probs[i];
  if (config.ratio == Ratio::kSequence) log_ratio /= static_cast<double>(n);
  log_ratio = std::min(log_ratio, kMostLogRatio);
  for (size_t i = 0; i < n; ++i) {
    double l = t.log_probs[i], a = t.advantages[i], difference = l - t.old_log_probs[i];
    double r = std::exp(common ? log_ratio : difference), scale = weight * correction[i];
    metrics->ratio += r;
    metrics->ratio_max = std::max(metrics->ratio_max, r);
    metrics->old_k1 -= difference;
    metrics->old_k3 += std::exp(difference) - 1 - difference;
    if (config.objective == PolicyObjective::kClip) {
      Term term = clipped(config, r, a, metrics);
      loss += scale * term.loss;
      (common ? common_slope : gradient[i]) += scale * term.slope * r;
    } else {
      bool cispo = config.objective == PolicyObjective::kCispo, cut = cispo && r > 1 + config.clip_high;
      metrics->clipped_high += cut;
      double factor = cispo ? std::min(r, 1 + config.clip_high) * a : a;
      loss -= scale * factor * l;
      gradient[i] -= scale * factor;
    }
    if (config.kl > 0) {
      double f = static_cast<double>(t.reference[i]) - l;
      bool k1 = config.kl_estimator == KlEstimator::kK1, k2 = config.kl_estimator == KlEstimator::kK2;
      double estimate = kl_estimate(config.kl_estimator, f);
      double slope = k1 ? 1 : k2 ? -f : 1 - std::exp(f);
      metrics->reference_kl += estimate;
      double share = weight * config.kl * (config.kl_ratio ? r : 1);
      loss += share * estimate;
      gradient[i] += share * slope;
      if (config.kl_ratio) (common ? common_slope : gradient[i]) += share * estimate;
    }
  }
  if (common) {
    for (double& g : gradient) g += common_slope / (config.ratio == Ratio::kSequence ? static_cast<double>(n) : 1);
  }
  metrics->tokens += static_cast<int64_t>(n);
  metrics->answers += 1;
  return loss;
}

double token_weight(const PolicyLossConfig& config, int64_t tokens, int64_t answers, int64_t all_tokens,
                    int64_t longest_allowed) {
  if (config.normalise == Normalise::kTokens) return 1.0 / static_cast<double>(all_tokens);
  int64_t length = config.normalise == Normalise::kConstant  ? longest_allowed
                   : config.normalise == Normalise::kAnswers ? 1
                                                             : tokens;
  return 1.0 / (static_cast<double>(answers) * static_cast<double>(length));
}

}  // namespace tritonrl
