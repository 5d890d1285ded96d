// SPDX-License-Identifier: Apache-2.0
#include "rollout/late_limits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace tritonrl::late_limits_test {
namespace {

constexpr double kBucket = 1.0906;  // A bucket is so many times as wide as the one before.

Sample sample(double own_s, Rule ended = Rule::kPass, const std::string& code = "") {
  static int64_t number = 0;
  Sample one;
  one.verdict.code = code.empty() ? cat("code ", ++number) : code;
  one.verdict.stages = {{Stage::kExtract, 0, {}}, {Stage::kCompile, 9, ended, own_s}};
  return one;
}

// 100 candidates, of which `slow` take so many times as long as the others.
Group group(double own_s, int slow = 0, double times = 100) {
  Group all;
  for (int i = 0; i < 100; ++i) all.samples.push_back(sample(i < slow ? own_s * times : own_s));
  return all;
}

LateConfig config() {
  LateConfig config;
  config.floor_s = 1;
  config.window = 3;
  config.at_least = 100;
  return config;
}

LateLimits limits(const LateConfig& config, int64_t staleness = 0) {
  return {config, {{Stage::kCompile, 60.0}, {Stage::kFullRun, 60.0}}, staleness};
}

void observe(LateLimits& late, int64_t step, const Group& one) { late.observe(step, {&one, 1}); }

double compile_limit(const LateLimits& late, int64_t step) {
  OwnLimits all = late.of_step(step);
  return all.contains(Stage::kCompile) ? all.at(Stage::kCompile) : NAN;
}

void expect_limit(const LateLimits& late, int64_t step, double expected) {
  double limit = compile_limit(late, step);
  EXPECT_GE(limit, expected) << "step " << step;
  EXPECT_LE(limit, expected * kBucket) << "step " << step;
}

TEST(OwnTimes, QuantilesAreRightToABucket) {
  OwnTimes times;
  for (int i = 1; i <= 1000; ++i) times.add(0.01 * i);
  for (double q : {0.01, 0.5, 0.95, 0.999, 1.0}) {
    EXPECT_GE(times.quantile(q), 10 * q) << q;
    EXPECT_LE(times.quantile(q), 10 * q * kBucket) << q;
  }
  EXPECT_EQ(times.count(), 1000);
  OwnTimes same = OwnTimes::from_json(Json::parse(times.to_json().dump()));
  EXPECT_EQ(same.quantile(0.7), times.quantile(0.7));
  OwnTimes twice = times;
  twice.add(times);
  EXPECT_EQ(twice.count(), 2000);
  EXPECT_EQ(twice.quantile(0.7), times.quantile(0.7));
  OwnTimes quick;
  quick.add(0);
  EXPECT_LE(quick.quantile(0.5), 0.0011);
}

TEST(LateLimits, AFactorTimesWhatNearlyAllTake) {
  LateLimits late = limits(config());
  EXPECT_TRUE(late.of_step(1).empty()) << "nothing was seen";
  observe(late, 1, group(2, 4));  // The slow four of a hundred do not count.
  EXPECT_TRUE(late.of_step(1).empty()) << "a step's own candidates have no say in it";
  expect_limit(late, 2, 4 * 2);
  EXPECT_FALSE(late.of_step(2).contains(Stage::kFullRun)) << "nobody was seen there";
}

TEST(LateLimits, SleepsUntilEnoughWereSeen) {
  LateConfig wanted = config();
  wanted.at_least = 300;
  LateLimits late = limits(wanted);
  observe(late, 1, group(2));
  observe(late, 2, group(2));
  EXPECT_TRUE(late.of_step(3).empty());
  observe(late, 3, group(2));
  EXPECT_FALSE(late.of_step(4).empty());
}

TEST(LateLimits, FloorAndDeadline) {
  LateConfig floor = config();
  floor.floor_s = 10;
  LateLimits late = limits(floor);
  observe(late, 1, group(0.1));
  EXPECT_EQ(compile_limit(late, 2), 10);
  observe(late, 2, group(20));
  observe(late, 3, group(20));
  EXPECT_TRUE(late.of_step(4).empty()) << "the deadline of the stage comes first";
  LateConfig off = config();
  off.factor = 0;
  LateLimits none = limits(off);
  observe(none, 1, group(1));
  EXPECT_TRUE(none.of_step(2).empty());
}

TEST(LateLimits, TheWindowMovesOn) {
  LateLimits late = limits(config());
  observe(late, 1, group(10));
  expect_limit(late, 2, 40);
  observe(late, 2, group(1));
  expect_limit(late, 3, 40);  // Half of them.
  observe(late, 3, group(1));
  observe(late, 4, group(1));
  expect_limit(late, 5, 4);  // Steps 2 to 4.
}

TEST(LateLimits, SamplingAheadIsOneStepBehind) {
  LateLimits late = limits(config(), 1);
  observe(late, 1, group(1));
  EXPECT_TRUE(late.of_step(2).empty()) << "begun while step 1 was verified";
  observe(late, 2, group(10));
  expect_limit(late, 3, 4);
  expect_limit(late, 4, 40);
}

TEST(LateLimits, WhoCounts) {
  LateLimits late = limits(config());
  Group all = group(2);
  for (int i = 0; i < 50; ++i) {
    all.samples.push_back(sample(0.001, Rule::kImportFailed));  // Ended before it did what others do.
    all.samples.push_back(sample(30, Rule::kVerifierFailed));   // Ours.
    all.samples.push_back(sample(30, Rule::kDeadline));
    all.samples.push_back(sample(30, Rule::kPass, "a copy"));  // The same answer again.
  }
  observe(late, 1, all);
  expect_limit(late, 2, 4 * 2);
}

// Else each limit would cut off the times that the next is drawn from.
TEST(LateLimits, TheLateCountAsTheSlowOnesTheyAre) {
  LateLimits late = limits(config());
  double limit = 8;
  for (int64_t step = 1; step < 20; ++step) {
    Group all = group(2);
    for (int i = 0; i < 4; ++i) all.samples.push_back(sample(limit, Rule::kLate));
    observe(late, step, all);
    limit = compile_limit(late, step + 1);
  }
  expect_limit(late, 20, 8);
  Group many = group(2);
  for (int i = 0; i < 20; ++i) many.samples.push_back(sample(limit, Rule::kLate));
  observe(late, 20, many);
  expect_limit(late, 21, 4 * limit);  // A twelfth of three steps is late: it was too short.
}

TEST(LateLimits, ARunThatContinuesHasTheLimitsItHad) {
  LateLimits all = limits(config(), 1), rest = limits(config(), 1);
  std::vector<Json> recorded = {Json()};
  for (int64_t step = 1; step <= 12; ++step) {
    if (step == 7) {  // It was stopped.
      for (int64_t before = 1; before < 7; ++before) rest.restore(before, recorded[static_cast<size_t>(before)]);
    }
    EXPECT_TRUE(step < 7 || rest.of_step(step) == all.of_step(step)) << step;
    Group one = group(0.3 * static_cast<double>(step), 6, 3), two = group(1);
    for (LateLimits* each : {&all, &rest}) {
      if (each == &rest && step < 7) continue;
      observe(*each, step, one);
      observe(*each, step, two);  // Another round of the step.
    }
    recorded.push_back(Json::parse(all.state(step).dump()));
  }
  EXPECT_FALSE(all.of_step(13).empty());
  EXPECT_EQ(all.of_step(13), rest.of_step(13));
  LateLimits old = limits(config());
  old.restore(1, Json::object());  // Of a run that recorded nothing.
  EXPECT_TRUE(old.of_step(2).empty());
}

TEST(LateConfig, Bounds) {
  EXPECT_NO_THROW(LateConfig().validate());
  auto refused = [](auto change) {
    LateConfig config;
    change(config);
    EXPECT_THROW(config.validate(), Error);
  };
  refused([](LateConfig& c) { c.factor = 1.5; });
  refused([](LateConfig& c) { c.factor = -1; });
  refused([](LateConfig& c) { c.factor = 1e6; });
  refused([](LateConfig& c) { c.quantile = 0.2; });
  refused([](LateConfig& c) { c.quantile = 1; });
  refused([](LateConfig& c) { c.floor_s = 0.5; });
  refused([](LateConfig& c) { c.window = 0; });
  refused([](LateConfig& c) { c.at_least = 5; });
  LateConfig off;
  off.factor = 0;
  EXPECT_NO_THROW(off.validate());
}

}  // namespace
}  // namespace tritonrl::late_limits_test
