// SPDX-License-Identifier: Apache-2.0
#include "rollout/late_limits.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

namespace tritonrl {
namespace {

constexpr double kFirstEdgeS = 1e-3;
constexpr double kBucketsPerDoubling = 8;

}  // namespace

void LateConfig::validate() const {
  if (factor != 0 && factor < 2) {
    throw usage_error(
        "factor must be 0 (off) or at least 2", "",
        "cores that are shared or throttled compute at half their speed, and nobody is to be late for it");
  }
  if (factor > 1000) throw usage_error("factor must be at most 1000");
  if (quantile < 0.5 || quantile > 0.999) throw usage_error("quantile must lie between 0.5 and 0.999");
  if (floor_s < 1) throw usage_error("floor_s must be at least 1: processor time is limited in whole seconds");
  if (window < 1 || window > 1000) throw usage_error("window must lie between 1 and 1000");
  if (at_least < 20) throw usage_error("at_least must be at least 20: a quantile of fewer says nothing");
}

void OwnTimes::add(double seconds, int64_t count) {
  double bucket = std::floor(kBucketsPerDoubling * std::log2(std::max(seconds, kFirstEdgeS) / kFirstEdgeS));
  buckets_[static_cast<int64_t>(bucket)] += count;
}

void OwnTimes::add(const OwnTimes& other) {
  for (const auto& [bucket, count] : other.buckets_) buckets_[bucket] += count;
}

int64_t OwnTimes::count() const {
  int64_t sum = 0;
  for (const auto& [bucket, count] : buckets_) sum += count;
  return sum;
}

double OwnTimes::quantile(double q) const {
  CHECK(!buckets_.empty()) << "a quantile of nothing";
  auto rank = static_cast<int64_t>(std::ceil(q * static_cast<double>(count())));
  int64_t seen = 0, at = 0;
  for (const auto& [bucket, count] : buckets_) {
    at = bucket;
    seen += count;
    if (seen >= rank) break;
  }
  return kFirstEdgeS * std::exp2(static_cast<double>(at + 1) / kBucketsPerDoubling);
}

Json OwnTimes::to_json() const {
  Json json = Json::object();
  for (const auto& [bucket, count] : buckets_) json[std::to_string(bucket)] = count;
  return json;
}

OwnTimes OwnTimes::from_json(const Json& json) {
  OwnTimes times;
  for (const auto& [bucket, count] : json.items()) times.buckets_[std::stoll(bucket)] = count.get<int64_t>();
  return times;
}

LateLimits::LateLimits(LateConfig config, std::map<Stage, double> deadlines, int64_t staleness)
    : config_(config), deadlines_(std::move(deadlines)), staleness_(staleness) {}

OwnLimits LateLimits::of_step(int64_t step) const {
  OwnLimits limits;
  if (config_.factor == 0) return limits;
  const int64_t behind = step - staleness_;  // The first one that it does not depend on.
  for (const auto& [stage, deadline] : deadlines_) {
    OwnTimes seen;
    for (auto it = steps_.lower_bound(behind - config_.window); it != steps_.end() && it->first < behind; ++it) {
      if (auto of_stage = it->second.find(stage); of_stage != it->second.end()) seen.add(of_stage->second);
    }
    if (seen.count() < config_.at_least) continue;
    double limit = std::max(config_.factor * seen.quantile(config_.quantile), config_.floor_s);
    if (limit < deadline) limits[stage] = limit;
  }
  return limits;
}

void LateLimits::observe(int64_t step, std::span<const Group> groups) {
  std::map<Stage, OwnTimes>& of_step = steps_[step];
  std::set<std::pair<std::string, std::string>> different;
  for (const Group& group : groups) {
    for (const Sample& sample : group.samples) {
      const Verdict& verdict = sample.verdict;
      if (!different.emplace(verdict.task_id, verdict.code).second) continue;
      for (const StageResult& result : verdict.stages) {
        bool counts = result.finding.passed() || result.finding.rule() == Rule::kLate;
        if (counts && result.own_s) of_step[result.stage].add(*result.own_s);
      }
    }
  }
  steps_.erase(steps_.begin(), steps_.lower_bound(step - config_.window - staleness_));
}

Json LateLimits::state(int64_t step) const {
  Json json = Json::object();
  auto it = steps_.find(step);
  if (it == steps_.end()) return json;
  for (const auto& [stage, times] : it->second) json[to_string(stage)] = times.to_json();
  return json;
}

void LateLimits::restore(int64_t step, const Json& state) {
  for (const auto& [stage, times] : state.items()) {
    auto known = named<Stage>(stage);
    CHECK(known) << "no stage " << stage;
    steps_[step][*known] = OwnTimes::from_json(times);
  }
}

}  // namespace tritonrl
