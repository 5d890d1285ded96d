// SPDX-License-Identifier: Apache-2.0
#include "train/policy_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "train/credit/advantages.h"

namespace tritonrl::policy_loss_test {
namespace {

const Json& goldens() {
  static const Json all = read_json(source_dir() + "/tests/golden/train/trl_losses.json");
  return all;
}

// TRL's settings in our terms; nothing where we have no such loss.
std::optional<PolicyLossConfig> ours(const Json& s) {
  PolicyLossConfig c;
  std::string trainer = s.at("trainer"), type = s.value("loss_type", "");
  c.clip_low = s.at("epsilon_low");
  c.clip_high = s.at("epsilon_high");
  if (trainer == "rloo") {
    c.ratio = Ratio::kAnswer;
    return c;
  }
  if (type == "sapo" || type == "vespo") return std::nullopt;
  if (type == "bnpo" || type == "dapo" || type == "cispo") c.normalise = Normalise::kTokens;
  if (type == "dr_grpo") c.normalise = Normalise::kConstant;
  if (type == "luspo") c.normalise = Normalise::kAnswers;
  c.ratio = named<Ratio>(s.at("importance_sampling_level").get<std::string>()).value();
  if (type == "cispo") {
    if (c.ratio == Ratio::kSequence) return std::nullopt;
    c.objective = PolicyObjective::kCispo;
    c.clip_high -= 1;  // TRL's is the bound itself.
  }
  if (s.contains("delta") && !s["delta"].is_null()) c.ratio_cap = s["delta"];
  c.kl = s.at("beta");
  c.kl_ratio = s.at("use_bias_correction_kl");
  return c;
}

TEST(PolicyLoss, LossesAndGradientsAreTrls) {
  int64_t compared = 0;
  for (const Json& golden : goldens().at("cases")) {
    std::string name = golden.at("name");
    const Json& settings = golden.at("settings");
    auto config = ours(settings);
    bool rloo = settings.at("trainer") == "rloo";
    if (!config || settings.value("gradient_accumulation_steps", 1) != 1 || name == "grpo_all_truncated" ||
        settings.value("steps_per_generation", 1) != 1 ||
        !settings.value("off_policy_mask_threshold", Json()).is_null()) {
      continue;
    }
    SCOPED_TRACE(name);
    auto now = golden.at("log_probs").get<std::vector<std::vector<float>>>();
    auto old = golden.at("old_log_probs").get<std::vector<std::vector<float>>>();
    auto reference = golden.at("ref_log_probs").get<std::vector<std::vector<float>>>();
    auto wanted = golden.at("gradient").get<std::vector<std::vector<double>>>();
    auto advantages = golden.at("advantages").get<std::vector<double>>();
    auto truncated = golden.at("truncated").get<std::vector<bool>>();
    bool leave_out = settings.value("mask_truncated_completions", false);
    auto sampled = old;
    bool corrected = golden.contains("sampler_ratio") && !golden["sampler_ratio"].is_null();
    if (corrected) {  // Such that our weight is the one that TRL multiplied by.
      config->correction = Correction::kToken;
      config->correction_mask = true;
      config->correction_cap = 9;
      for (size_t i = 0; i < old.size(); ++i) {
        for (size_t t = 0; t < old[i].size(); ++t) {
          const Json& of_answer = golden["sampler_ratio"][i];
          double weight =
              of_answer.is_array() ? of_answer[of_answer.size() == 1 ? 0 : t].get<double>() : of_answer.get<double>();
          sampled[i][t] = static_cast<float>(old[i][t] - (weight == 0 ? std::log(10.0) : std::log(weight)));
        }
      }
    }
    int64_t all_tokens = 0;
    for (size_t i = 0; i < now.size(); ++i) all_tokens += truncated[i] && leave_out ? 0 : now[i].size();
    double loss = 0;
    PolicyLossMetrics metrics;
    for (size_t i = 0; i < now.size(); ++i) {
      size_t n = now[i].size();
      std::vector<double> gradient(n, 0);
      if (truncated[i] && leave_out) {
        if (rloo) loss -= advantages[i] / 8;  // TRL counts its ratio as 1.
      } else {
        std::vector<float> advantage(n, static_cast<float>(advantages[i]));
        AnswerTerms terms{now[i], old[i], sampled[i], advantage, {}};
        if (config->kl > 0) terms.reference = reference[i];
        double weight =
            token_weight(*config, static_cast<int64_t>(n), 8, all_tokens, settings.value("max_completion_length", 1));
        loss += policy_loss(*config, terms, weight, gradient, &metrics);
      }
      for (size_t t = 0; t < n; ++t) EXPECT_NEAR(gradient[t], wanted[i][t], 2e-6) << "answer " << i << " token " << t;
    }
    EXPECT_NEAR(loss, golden.at("loss").get<double>(), 2e-6);
    ++compared;
  }
  EXPECT_GE(compared, 60);
}

TEST(PolicyLoss, AdvantagesAreTrls) {
  int64_t compared = 0;
  for (const Json& golden : goldens().at("advantage_cases")) {
    const Json& settings = golden.at("settings");
    SCOPED_TRACE(golden.at("name").get<std::string>());
    AdvantageConfig config;
    std::unique_ptr<Credit> credit;
    if (settings.at("trainer") == "rloo") {
      if (settings.value("normalize_advantages", false) || settings.value("beta", 0.0) != 0 ||
          !settings.value("reward_clip_range", Json()).is_null()) {
        continue;
      }
      credit = make_rloo(config);
    } else {
      config.scale = named<Scale>(settings.at("scale_rewards").get<std::string>()).value();
      credit = make_grpo(config);
    }
    std::vector<Group> groups;
    for (const Json& group : golden.at("rewards")) {
      groups.emplace_back();
      for (const Json& reward : group) {
        Sample sample;
        sample.rollout = {{7, 8}, {-1, -2}, true, "", {1}};
        if (!reward.is_null()) sample.to_go = Reward{reward.get<double>()};
        groups.back().samples.push_back(std::move(sample));
      }
    }
    auto examples = credit->assign(groups);
    size_t at = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t r = 0; r < groups[g].samples.size(); ++r) {
        double wanted = golden.at("advantages")[g][r];
        if (!groups[g].samples[r].to_go) {
          EXPECT_EQ(wanted, 0);
          continue;
        }
        ASSERT_LT(at, examples.size());
        for (size_t t : {1, 2}) {
          EXPECT_NEAR(examples[at].weights[t], wanted, 1e-6 + 1e-5 * std::abs(wanted)) << g << ", " << r;
        }
        ++at;
      }
    }
    EXPECT_EQ(at, examples.size());
    ++compared;
  }
  EXPECT_GE(compared, 25);
}

// One token: l = log 0.5, o = log 0.25, so r = 2; A = 1 or -1.
double one(const PolicyLossConfig& config, double advantage, double* slope, PolicyLossMetrics* metrics) {
  float now = std::log(0.5f), old = std::log(0.25f), a = static_cast<float>(advantage);
  std::vector<double> gradient(1, 0);
  double loss = policy_loss(config, {{&now, 1}, {&old, 1}, {&old, 1}, {&a, 1}, {}}, 1, gradient, metrics);
  *slope = gradient[0];
  return loss;
}

TEST(PolicyLoss, HandWorkedToken) {
  PolicyLossConfig config;
  double slope = 0;
  PolicyLossMetrics metrics;
  EXPECT_NEAR(one(config, 1, &slope, &metrics), -1.2, 1e-6);  // The clamp binds.
  EXPECT_EQ(slope, 0);
  EXPECT_EQ(metrics.clipped_high, 1);
  EXPECT_NEAR(one(config, -1, &slope, &metrics), 2, 1e-6);  // A worse answer is never forgiven.
  EXPECT_NEAR(slope, 2, 1e-6);
  config.dual_clip = 1.5;
  EXPECT_NEAR(one(config, -1, &slope, &metrics), 1.5, 1e-6);
  EXPECT_EQ(slope, 0);
  config = {};
  config.objective = PolicyObjective::kPlain;
  EXPECT_NEAR(one(config, -1, &slope, &metrics), std::log(0.5), 1e-6);
  EXPECT_NEAR(slope, 1, 1e-6);
  config.objective = PolicyObjective::kCispo;
  EXPECT_NEAR(one(config, 1, &slope, &metrics), -1.2 * std::log(0.5), 1e-6);
  EXPECT_NEAR(slope, -1.2, 1e-6);
}

TEST(PolicyLoss, KlEstimatorsAndTheirSlopes) {
  float now = std::log(0.5f), reference = std::log(0.25f), zero = 0;
  auto kl = [&](KlEstimator estimator, double* slope) {
    PolicyLossConfig config;
    config.kl = 1;
    config.kl_estimator = estimator;
    std::vector<double> gradient(1, 0);
    PolicyLossMetrics metrics;
    double loss =
        policy_loss(config, {{&now, 1}, {&now, 1}, {&now, 1}, {&zero, 1}, {&reference, 1}}, 1, gradient, &metrics);
    EXPECT_NEAR(metrics.reference_kl, loss, 1e-9);
    *slope = gradient[0];
    return loss;
  };
  double slope = 0, f = std::log(0.5);
  EXPECT_NEAR(kl(KlEstimator::kK1, &slope), -f, 1e-6);
  EXPECT_NEAR(slope, 1, 1e-6);
  EXPECT_NEAR(kl(KlEstimator::kK2, &slope), f * f / 2, 1e-6);
  EXPECT_NEAR(slope, -f, 1e-6);
  EXPECT_NEAR(kl(KlEstimator::kK3, &slope), 0.5 - f - 1, 1e-6);
  EXPECT_NEAR(slope, 0.5, 1e-6);
}

TEST(PolicyLoss, AnswersDrawnByAnotherPolicyAreTruncatedMaskedOrVetoed) {
  std::vector<float> now = {-1, -1}, sampled = {-1 - std::log(4.0f), -1 + std::log(8.0f)}, a = {1, 1};
  auto slopes = [&](PolicyLossConfig config, PolicyLossMetrics* metrics) {
    std::vector<double> gradient(2, 0);
    policy_loss(config, {now, now, sampled, a, {}}, 1, gradient, metrics);
    return gradient;
  };
  PolicyLossConfig config;
  PolicyLossMetrics metrics;
  EXPECT_EQ(slopes(config, &metrics), (std::vector<double>{-1, -1}));
  EXPECT_NEAR(metrics.sampled_difference_max, std::log(8), 1e-6);
  config.correction = Correction::kToken;  // 4 and 1/8.
  auto token = slopes(config, &metrics);
  EXPECT_NEAR(token[0], -2, 1e-6);
  EXPECT_NEAR(token[1], -0.125, 1e-6);
  config.correction_mask = true;
  config.correction_floor = 0.5;
  EXPECT_EQ(slopes(config, &metrics), (std::vector<double>{0, 0}));
  config.correction_mask = false;
  config.correction = Correction::kSequence;  // 4 / 8.
  EXPECT_NEAR(slopes(config, &metrics)[0], -0.5, 1e-6);
  config.veto = 0.2;
  metrics = {};
  EXPECT_EQ(slopes(config, &metrics), (std::vector<double>{0, 0}));
  EXPECT_EQ(metrics.vetoed, 1);
}

TEST(PolicyLoss, BadSettingsAreErrors) {
  auto bad = [](auto set) {
    PolicyLossConfig config;
    set(config);
    EXPECT_THROW(config.validate(), Error);
  };
  bad([](auto& c) { c.clip_low = 1.5; });
  bad([](auto& c) { c.dual_clip = 0.5; });
  bad([](auto& c) { c.kl = -1; });
  bad([](auto& c) { c.correction_cap = 0.5; });
}

}  // namespace
}  // namespace tritonrl::policy_loss_test
