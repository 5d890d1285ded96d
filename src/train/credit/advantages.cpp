// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/error.h"
#include "base/stats.h"

namespace tritonrl {

void AdvantageConfig::validate() const {
  if (moving < 0 || moving >= 1) throw usage_error("moving is a share: it must lie in [0, 1)");
  if (plan_weight < 0) throw usage_error("plan_weight must not be negative");
}

std::unique_ptr<Credit> make_advantages(const AdvantageConfig& config) {
  switch (config.formula) {
    case AdvantageFormula::kReinforce:
      return make_reinforce(config);
    case AdvantageFormula::kRloo:
      return make_rloo(config);
    case AdvantageFormula::kGrpo:
      return make_grpo(config);
    case AdvantageFormula::kReinforcePp:
      return make_reinforce_pp(config);
  }
  CHECK(false) << "no such formula";
}

std::vector<double> all_of(const GroupRewards& rewards) {
  std::vector<double> all;
  for (const auto& group : rewards) {
    for (const auto& reward : group) {
      if (reward) all.push_back(*reward);
    }
  }
  return all;
}

double middle_of(const std::vector<double>& values) {
  bool equal = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  return equal && !values.empty() ? values[0] : mean(values);
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double middle = middle_of(values), sum = 0;
  for (double v : values) sum += (v - middle) * (v - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

GroupAdvantages minus_group_mean(const GroupRewards& rewards) {
  GroupAdvantages out;
  for (const auto& group : rewards) {
    double middle = middle_of(all_of({group}));
    out.emplace_back();
    for (const auto& reward : group) out.back().push_back(reward ? *reward - middle : 0);
  }
  return out;
}

namespace {

bool within(const std::vector<double>& values, double noise) {
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return values.empty() || *most - *least <= noise;
}

// The spread of a group that timing noise explains is none.
void flatten_noise(std::vector<std::optional<double>>& rewards, const std::vector<Judged>& judged,
                   double Judged::*noise_of) {
  std::vector<double> values = all_of({rewards});
  double noise = 0;
  for (const Judged& one : judged) noise = std::max(noise, one.reward ? one.*noise_of : 0);
  if (values.empty() || !within(values, noise)) return;
  double middle = middle_of(values);
  for (auto& reward : rewards) {
    if (reward) reward = middle;
  }
}

// Answers that are compared with each other: places of rollouts in their group.
struct Peers {
  size_t group = 0;
  std::vector<size_t> rollouts;
};

std::vector<Peers> peers_of(const std::vector<Judged>& scores, size_t group, const AdvantageConfig& config) {
  std::map<int64_t, Peers> by_turn;
  for (size_t r = 0; r < scores.size(); ++r) {
    Peers& peers = by_turn[config.turns == Turns::kApart ? scores[r].turn : 0];
    peers.group = group;
    peers.rollouts.push_back(r);
  }
  std::vector<Peers> out;
  for (auto& [turn, peers] : by_turn) out.push_back(std::move(peers));
  return out;
}

std::vector<Judged> pick(const std::vector<Judged>& scores, const Peers& peers) {
  std::vector<Judged> out;
  for (size_t r : peers.rollouts) out.push_back(scores[r]);
  return out;
}

bool all_equal(const std::vector<Judged>& judged_ones, const AdvantageConfig& config) {
  std::vector<double> rewards, plans;
  double noise = 0, plan_noise = 0;
  for (const Judged& judged : judged_ones) {
    if (!judged.reward) continue;
    rewards.push_back(*judged.reward);
    plans.push_back(judged.plan);
    noise = std::max(noise, judged.noise);
    plan_noise = std::max(plan_noise, judged.plan_noise);
  }
  return within(rewards, config.noise_filter ? noise : 0) && within(plans, config.noise_filter ? plan_noise : 0);
}

}  // namespace

bool teaches_nothing(const std::vector<Judged>& group, const AdvantageConfig& config) {
  auto all = peers_of(group, 0, config);
  return std::all_of(all.begin(), all.end(), [&](const Peers& p) { return all_equal(pick(group, p), config); });
}

std::vector<TrainExample> examples_with_advantages(
    const std::vector<Group>& groups, const Scores& scores, const AdvantageConfig& config,
    const std::function<GroupAdvantages(const GroupRewards& rewards, const GroupLengths& lengths)>& formula) {
  CHECK(scores.size() == groups.size()) << groups.size() << " groups";
  std::vector<Peers> all;
  GroupRewards rewards, plans;
  GroupLengths lengths;
  bool by_parts = false;
  for (size_t g = 0; g < groups.size(); ++g) {
    CHECK(scores[g].size() == groups[g].rollouts.size()) << "a score for each rollout";
    for (Peers& peers : peers_of(scores[g], g, config)) {
      std::vector<Judged> judged_ones = pick(scores[g], peers);
      rewards.emplace_back();
      plans.emplace_back();
      lengths.emplace_back();
      for (size_t r : peers.rollouts)
        lengths.back().push_back(static_cast<int64_t>(groups[g].rollouts[r].tokens.size()));
      for (const Judged& judged : judged_ones) {
        rewards.back().push_back(judged.reward);
        plans.back().push_back(judged.reward ? std::optional(judged.plan) : std::nullopt);
        by_parts |= judged.code.has_value();
      }
      if (config.noise_filter) {
        flatten_noise(rewards.back(), judged_ones, &Judged::noise);
        flatten_noise(plans.back(), judged_ones, &Judged::plan_noise);
      }
      all.push_back(std::move(peers));
    }
  }
  GroupAdvantages code = formula(rewards, lengths), plan = by_parts ? formula(plans, lengths) : code;
  std::vector<TrainExample> examples;
  for (size_t p = 0; p < all.size(); ++p) {
    const Group& group = groups[all[p].group];
    for (size_t i = 0; i < all[p].rollouts.size(); ++i) {
      const Rollout& rollout = group.rollouts[all[p].rollouts[i]];
      const Judged& judged = scores[all[p].group][all[p].rollouts[i]];
      if (!judged.reward || rollout.tokens.empty() || (config.mask_unfinished && !rollout.finished)) continue;
      TrainExample example = example_of(group, rollout);
      example.sampled_log_probs = rollout.log_probs;
      for (size_t t = 0; t < rollout.tokens.size(); ++t) {
        auto at = static_cast<int64_t>(t);
        bool is_plan = judged.code && at < judged.code->first;
        example.weights[static_cast<size_t>(example.answer_begin) + t] =
            static_cast<float>(is_plan ? config.plan_weight * plan[p][i] : code[p][i]);
      }
      examples.push_back(std::move(example));
    }
  }
  return examples;
}

}  // namespace tritonrl
