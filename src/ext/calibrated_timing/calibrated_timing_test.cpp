// SPDX-License-Identifier: Apache-2.0
// The protocol on made-up readings whose truth is known.
#include "ext/calibrated_timing/calibrated_timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "base/stats.h"

namespace tritonrl::calibrated_timing::calibrated_timing_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What disturbs made-up readings; shares of 1.
struct Noise {
  double each = 0.01;    // Of each time, normal.
  double place = 0;      // Of a place's ratio, normal.
  double outliers = 0;   // Share of times that are up to ten times too long.
  double throttled = 0;  // Share of pairs taken at 80 % of the clock, the candidate's time alone suffering.
  double bad = 0;        // Share of readings that are no numbers.
  double drift = 0;      // Of both times, over all readings.
};

std::vector<Reading> make_readings(Rng& rng, int64_t count, double ratio, const Noise& noise, double base_s = 1e-4) {
  std::vector<Reading> readings;
  double place_bias = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 10 == 0) place_bias = noise.place * rng.normal();
    Reading reading;
    double drift = 1 + noise.drift * static_cast<double>(i) / static_cast<double>(count);
    reading.reference_s = base_s * ratio * drift * std::exp(noise.each * rng.normal() + place_bias);
    reading.candidate_s = base_s * drift * std::exp(noise.each * rng.normal());
    reading.clock_mhz = 1980 * (1 + 0.002 * rng.normal());
    reading.place = i / 10;
    reading.seconds = 1e-3;
    if (rng.uniform() < noise.outliers) reading.reference_s *= 1 + 9 * rng.uniform();
    if (rng.uniform() < noise.outliers) reading.candidate_s *= 1 + 9 * rng.uniform();
    if (rng.uniform() < noise.throttled) {
      reading.clock_mhz *= 0.8;
      reading.candidate_s *= 1.25;
    }
    if (rng.uniform() < noise.bad) {
      const double bad[] = {kNan, kInfinity, -kInfinity, 0, -1e-5};
      reading.reference_s = bad[rng.next_u64() % 5];
    }
    readings.push_back(reading);
  }
  return readings;
}

TEST(CalibratedTiming, ReadsAsItIsMeantTo) {
  ReadingSpec spec = CalibratedTiming().spec();
  EXPECT_EQ(spec.warm_ups, 10);
  EXPECT_EQ(spec.batch, 25);
  EXPECT_TRUE(spec.cold);
  EXPECT_TRUE(spec.clock);
  EXPECT_GE(spec.span_s, 200e-6);
  EXPECT_GT(spec.readings_per_place, 0);
}

TEST(CalibratedTiming, WithoutNoiseTheRatioIsExact) {
  Rng rng(1);
  auto result = CalibratedTiming().reduce(make_readings(rng, 50, 1.5, {.each = 0}));
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->ratio, 1.5, 1e-12);
  EXPECT_NEAR(result->ratio_low, 1.5, 1e-12);
  EXPECT_NEAR(result->candidate_s, 1e-4, 1e-16);
  EXPECT_NEAR(result->reference_s, 1.5e-4, 1e-16);
  EXPECT_NEAR(result->clock_mhz, 1980, 10);
  EXPECT_EQ(result->readings, 50);
  EXPECT_EQ(result->discarded, 0);
}

// Worked by hand: ten ratios of e^0 .. e^9; one is left out and winsorised at either end.
TEST(CalibratedTiming, TrimmedMeanAndIntervalAreAsWorkedByHand) {
  std::vector<Reading> readings;
  for (int i = 0; i < 10; ++i) readings.push_back({std::exp(i), 1, 0, 0, 0});
  auto result = CalibratedTiming().reduce(readings);
  ASSERT_TRUE(result);
  EXPECT_NEAR(std::log(result->ratio), 4.5, 1e-9);
  // Winsorised: 1 1 2 3 4 5 6 7 8 8: variance 66.5 / 9; t(0.975, 7) = 2.364624.
  double half = 2.364624 * std::sqrt(66.5 / 9) / (0.8 * std::sqrt(10));
  EXPECT_NEAR(std::log(result->ratio_high), 4.5 + half, 1e-4);
  EXPECT_NEAR(std::log(result->ratio_low), 4.5 - half, 1e-4);
}

TEST(CalibratedTiming, SwappingTheSidesInvertsTheRatio) {
  Rng rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    auto readings = make_readings(rng, 60, 1 + rng.uniform(), {.each = 0.02, .place = 0.01, .outliers = 0.05});
    auto there = CalibratedTiming().reduce(readings);
    for (Reading& reading : readings) std::swap(reading.reference_s, reading.candidate_s);
    auto back = CalibratedTiming().reduce(readings);
    ASSERT_TRUE(there && back);
    EXPECT_NEAR(there->ratio * back->ratio, 1, 1e-9);
    EXPECT_NEAR(there->ratio_low * back->ratio_high, 1, 1e-9);
  }
}

TEST(CalibratedTiming, ScaleDoesNotMatter) {
  Rng a(3), b(3);
  Noise noise{.each = 0.02, .outliers = 0.1};
  auto micro = CalibratedTiming().reduce(make_readings(a, 50, 1.2, noise, 5e-6));
  auto milli = CalibratedTiming().reduce(make_readings(b, 50, 1.2, noise, 5e-3));
  ASSERT_TRUE(micro && milli);
  EXPECT_NEAR(micro->ratio, milli->ratio, 1e-9);
}

// The interval holds the truth about as often as it says, with white noise, with noise of places, with outliers.
TEST(CalibratedTiming, TheIntervalHoldsTheTruth) {
  Rng rng(4);
  const Noise kinds[] = {{.each = 0.02}, {.each = 0.005, .place = 0.01}, {.each = 0.02, .outliers = 0.04}};
  for (const Noise& noise : kinds) {
    int held = 0;
    constexpr int kTrials = 400;
    for (int trial = 0; trial < kTrials; ++trial) {
      auto result = CalibratedTiming().reduce(make_readings(rng, 80, 1.1, noise));
      ASSERT_TRUE(result);
      held += result->ratio_low <= 1.1 && 1.1 <= result->ratio_high;
    }
    EXPECT_GE(held, kTrials * 0.92) << noise.place << " " << noise.outliers;
  }
}

// The mean of five that it replaces, on the same readings.
TEST(CalibratedTiming, IsSteadierThanAPlainMean) {
  Rng rng(5);
  Noise noise{.each = 0.01, .place = 0.003, .outliers = 0.03, .throttled = 0.02, .drift = 0.05};
  std::vector<double> plain, calibrated;
  for (int trial = 0; trial < 200; ++trial) {
    auto readings = make_readings(rng, 100, 1, noise);
    calibrated.push_back(std::log(CalibratedTiming().reduce(readings)->ratio));
    readings.resize(5);
    plain.push_back(std::log(PlainMean().reduce(readings)->ratio));
  }
  EXPECT_LT(stddev(calibrated), 0.25 * stddev(plain));
  EXPECT_LT(stddev(calibrated), 0.005);
}

TEST(CalibratedTiming, ThrottledReadingsAreDroppedAndCounted) {
  Rng rng(6);
  auto readings = make_readings(rng, 100, 1, {.each = 0.001});
  for (size_t i = 0; i < 30; ++i) {
    readings[i].clock_mhz = 1500;
    readings[i].candidate_s *= 1.4;
  }
  auto result = CalibratedTiming().reduce(readings);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->discarded, 30);
  EXPECT_EQ(result->readings, 70);
  EXPECT_NEAR(result->ratio, 1, 0.001);
  for (Reading& reading : readings) reading.clock_mhz = 0;  // Not read: nothing to go by.
  EXPECT_EQ(CalibratedTiming().reduce(readings)->discarded, 0);
}

TEST(CalibratedTiming, WhatIsNoNumberIsDroppedAndCounted) {
  Rng rng(7);
  auto readings = make_readings(rng, 60, 1.3, {.each = 0.001, .bad = 0.3});
  int64_t bad = 0;
  for (const Reading& reading : readings) bad += !is_good(reading);
  ASSERT_GT(bad, 5);
  readings[1].clock_mhz = kNan;
  auto result = CalibratedTiming().reduce(readings);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->discarded, bad);
  EXPECT_EQ(result->readings, 60 - bad);
  EXPECT_NEAR(result->ratio, 1.3, 0.002);
}

TEST(CalibratedTiming, FewerThanThreeGoodReadingsAreNoMeasurement) {
  CalibratedTiming calibrated;
  PlainMean plain;
  Reading good{2e-5, 1e-5, 1980, 0, 1e-3}, bad{kNan, 1e-5, 1980, 0, 1e-3};
  for (const TimingProtocol* protocol : std::initializer_list<const TimingProtocol*>{&calibrated, &plain}) {
    EXPECT_FALSE(protocol->reduce({}));
    EXPECT_FALSE(protocol->reduce({good, good, bad, bad, bad}));
    EXPECT_FALSE(protocol->reduce(std::vector<Reading>(50, bad)));
    ASSERT_TRUE(protocol->reduce({good, good, good, bad}));
    EXPECT_NEAR(protocol->reduce({good, good, good, bad})->ratio, 2, 1e-9);
  }
}

// Whatever comes in, what comes out is a sound measurement or none.
TEST(CalibratedTiming, NeverGivesNonsense) {
  Rng rng(8);
  const double odd[] = {kNan, kInfinity, -kInfinity, 0, -0.0, -1, 1e-300, 1e300, 5e-324, 1e-5, 2e-5, 1};
  CalibratedTiming protocol;
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<Reading> readings;
    for (uint64_t i = 0, n = rng.next_u64() % 80; i < n; ++i) {
      auto pick = [&] { return rng.uniform() < 0.6 ? 1e-5 * (1 + rng.uniform()) : odd[rng.next_u64() % 12]; };
      readings.push_back({pick(), pick(), pick(), static_cast<int64_t>(rng.next_u64() % 7), pick()});
    }
    auto result = protocol.reduce(readings);
    protocol.want_more(readings);
    if (!result) continue;
    EXPECT_GE(result->readings, 3);
    EXPECT_EQ(result->readings + result->discarded, static_cast<int64_t>(readings.size()));
    EXPECT_TRUE(std::isfinite(result->ratio) && result->ratio > 0);
    EXPECT_LE(result->ratio_low, result->ratio);
    EXPECT_GE(result->ratio_high, result->ratio);
    EXPECT_GT(result->candidate_s, 0);
  }
}

TEST(CalibratedTiming, StopsWhenItIsSure) {
  Rng rng(9);
  CalibratedTiming protocol;
  EXPECT_TRUE(protocol.want_more({}));
  EXPECT_TRUE(protocol.want_more(make_readings(rng, 49, 1, {.each = 0})));
  EXPECT_FALSE(protocol.want_more(make_readings(rng, 50, 1, {.each = 0.001})));
  EXPECT_TRUE(protocol.want_more(make_readings(rng, 50, 1, {.each = 0.05})));
  EXPECT_FALSE(protocol.want_more(make_readings(rng, 50, 2, {.each = 0.02}))) << "far from 1, less will do";
  EXPECT_TRUE(protocol.want_more(make_readings(rng, 50, 1, {.each = 0.02})));
  EXPECT_FALSE(protocol.want_more(make_readings(rng, 400, 1, {.each = 0.5})));
  EXPECT_TRUE(protocol.want_more(make_readings(rng, 60, 1, {.bad = 1.1})));  // Nothing to go by yet.
  EXPECT_FALSE(protocol.want_more(make_readings(rng, 400, 1, {.bad = 1.1})));
  auto long_runs = make_readings(rng, 25, 1, {.each = 0.001});
  for (Reading& reading : long_runs) reading.reference_s *= 1e3, reading.candidate_s *= 1e3;
  EXPECT_FALSE(protocol.want_more(long_runs)) << "runs of milliseconds need fewer readings";
  long_runs.pop_back();
  EXPECT_TRUE(protocol.want_more(long_runs));
  auto slow = make_readings(rng, 6, 1, {.each = 0.05});
  for (Reading& reading : slow) reading.seconds = 2;
  EXPECT_FALSE(protocol.want_more(slow));
  slow.pop_back();
  EXPECT_TRUE(protocol.want_more(slow));
}

TEST(CalibratedTiming, StoppingMeansTheGoalIsReached) {
  Rng rng(10);
  CalibratedTiming protocol;
  std::vector<double> logs;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Reading> readings;
    while (protocol.want_more(readings)) {
      auto more = make_readings(rng, 50, 1, {.each = 0.01, .place = 0.002, .outliers = 0.02});
      for (Reading& reading : more) reading.place += static_cast<int64_t>(readings.size()) / 10;
      readings.insert(readings.end(), more.begin(), more.end());
    }
    logs.push_back(std::log(protocol.reduce(readings)->ratio));
  }
  EXPECT_LT(stddev(logs), 0.005);
}

}  // namespace
}  // namespace tritonrl::calibrated_timing::calibrated_timing_test
