// SPDX-License-Identifier: Apache-2.0
#include "train/credit/advantages.h"

#include <algorithm>
#include <cmath>
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

std::vector<double> rewards_of(std::span<const Peers> all) {
  std::vector<double> rewards;
  for (const Peers& peers : all) {
    for (const Compared& one : peers) rewards.push_back(one.reward);
  }
  return rewards;
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

void minus_group_mean(std::span<Peers> all) {
  for (Peers& peers : all) {
    double middle = middle_of(rewards_of({&peers, 1}));
    for (Compared& one : peers) one.advantage = one.reward - middle;
  }
}

namespace {

// Places of samples that are compared with each other. Those without a return are compared with nothing.
std::vector<std::vector<size_t>> peers_of(const Group& group, const AdvantageConfig& config) {
  std::map<int64_t, std::vector<size_t>> by_turn;
  for (size_t s = 0; s < group.samples.size(); ++s) {
    const Sample& sample = group.samples[s];
    if (sample.to_go) by_turn[config.turns == Turns::kApart ? sample.rollout.turn : 0].push_back(s);
  }
  std::vector<std::vector<size_t>> out;
  for (auto& [turn, places] : by_turn) out.push_back(std::move(places));
  return out;
}

bool within(const std::vector<double>& values, double noise) {
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return values.empty() || *most - *least <= noise;
}

// A part of the returns, `value` with its `noise`. The spread that timing noise explains is none.
Peers compared(const Group& group, const std::vector<size_t>& places, double Reward::*value, double Reward::*noise,
               const AdvantageConfig& config) {
  Peers peers;
  double most_noise = 0;
  for (size_t s : places) {
    const Sample& sample = group.samples[s];
    peers.push_back({(*sample.to_go).*value, static_cast<double>(sample.rollout.tokens.size())});
    most_noise = std::max(most_noise, (*sample.to_go).*noise);
  }
  std::vector<double> values = rewards_of({&peers, 1});
  if (!config.noise_filter || !within(values, most_noise)) return peers;
  double middle = middle_of(values);
  for (Compared& one : peers) one.reward = middle;
  return peers;
}

}  // namespace

bool teaches_nothing(const Group& group, const AdvantageConfig& config) {
  auto equal = [&](const std::vector<size_t>& places, double Reward::*value, double Reward::*noise) {
    Peers peers = compared(group, places, value, noise, config);
    return within(rewards_of({&peers, 1}), 0);
  };
  auto all = peers_of(group, config);
  return std::all_of(all.begin(), all.end(), [&](const std::vector<size_t>& places) {
    return equal(places, &Reward::value, &Reward::noise) && equal(places, &Reward::plan, &Reward::plan_noise);
  });
}

std::vector<TrainExample> examples_with_advantages(std::span<Group> groups, const AdvantageConfig& config,
                                                   const Formula& formula) {
  std::vector<std::vector<Sample*>> samples;  // As peers, for each of `code` and `plan`.
  std::vector<Peers> code, plan;
  bool by_parts = false;
  for (Group& group : groups) {
    if (!group.trained_on) continue;
    for (const auto& places : peers_of(group, config)) {
      code.push_back(compared(group, places, &Reward::value, &Reward::noise, config));
      plan.push_back(compared(group, places, &Reward::plan, &Reward::plan_noise, config));
      samples.emplace_back();
      for (size_t s : places) {
        samples.back().push_back(&group.samples[s]);
        by_parts |= group.samples[s].code.has_value();
      }
    }
  }
  formula(code);
  if (by_parts) formula(plan);
  for (size_t p = 0; p < samples.size(); ++p) {
    for (size_t i = 0; i < samples[p].size(); ++i) {
      const Rollout& rollout = samples[p][i]->rollout;
      if (rollout.tokens.empty() || (config.mask_unfinished && !rollout.finished)) continue;
      samples[p][i]->advantage = {code[p][i].advantage, config.plan_weight * plan[p][i].advantage};
    }
  }
  std::vector<TrainExample> examples;
  for (const Group& group : groups) {
    for (const Sample& sample : group.samples) {
      if (!sample.advantage) continue;
      examples.push_back(example_of(group, sample));
      examples.back().sampled_log_probs = sample.rollout.log_probs;
    }
  }
  return examples;
}

}  // namespace tritonrl
