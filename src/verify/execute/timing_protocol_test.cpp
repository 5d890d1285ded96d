// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/timing_protocol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "verify/execute/timing_json.h"

namespace tritonrl::timing_protocol_test {
namespace {

Reading reading(double reference_s, double candidate_s) { return {reference_s, candidate_s, 0, 0, 0}; }

TEST(PlainMean, IsARatioOfMeans) {
  PlainMean plain;
  EXPECT_TRUE(plain.want_more(std::vector<Reading>(4)));
  EXPECT_FALSE(plain.want_more(std::vector<Reading>(5)));
  auto result = plain.reduce({reading(2, 1), reading(4, 1), reading(3, 4)});
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->reference_s, 3);
  EXPECT_DOUBLE_EQ(result->candidate_s, 2);
  EXPECT_DOUBLE_EQ(result->ratio, 1.5);
  EXPECT_EQ(result->readings, 3);
}

TEST(PlainMean, DropsWhatIsNoNumber) {
  std::vector<Reading> readings = {reading(2, 1),   reading(2, 1),        reading(2, 1), reading(NAN, 1),
                                   reading(1, NAN), reading(INFINITY, 1), reading(0, 1), reading(1, -1)};
  auto result = PlainMean().reduce(readings);
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->ratio, 2);
  EXPECT_EQ(result->discarded, 5);
  readings.erase(readings.begin());
  EXPECT_FALSE(PlainMean().reduce(readings));
}

TEST(Band, EqualsRarelyCrossIt) {
  Rng rng(1);
  int crossed = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios;
    for (int i = 0; i < 5; ++i) ratios.push_back(std::exp(0.01 * rng.normal()));
    crossed += std::exp(0.01 * rng.normal()) - 1 > noise_band_of(ratios);
  }
  EXPECT_GT(crossed, 0);
  EXPECT_LT(crossed, kTrials * 0.015);
}

TEST(Band, OfNothingIsNothing) {
  EXPECT_EQ(noise_band_of({}), 0);
  EXPECT_EQ(noise_band_of({1, 1, 1}), 0);
  EXPECT_EQ(noise_band_of({NAN, INFINITY, -1, 0}), 0);
  EXPECT_NEAR(noise_band_of({std::exp(0.01), std::exp(-0.01)}), 0.01 * 6.964557, 1e-6);  // t(0.99, 2).
}

TEST(Band, ASpeedupHasToLeaveItAndTheInterval) {
  auto speedup = [](double ratio, double low, double high, double band) {
    TimingResult result;
    result.ratio = ratio;
    result.ratio_low = low;
    result.ratio_high = high;
    apply_band(&result, band);
    EXPECT_EQ(result.noise_band, band);
    return result.speedup;
  };
  EXPECT_EQ(speedup(1.02, 0, 0, 0.03), 1);
  EXPECT_EQ(speedup(0.98, 0, 0, 0.03), 1);
  EXPECT_EQ(speedup(1.04, 0, 0, 0.03), 1.04);
  EXPECT_EQ(speedup(0.5, 0, 0, 0.03), 0.5);
  EXPECT_EQ(speedup(1.04, 1.03, 1.05, 0.03), 1.04);
  EXPECT_EQ(speedup(1.04, 0.99, 1.09, 0.03), 1);
  EXPECT_EQ(speedup(1.02, 1.019, 1.021, 0.03), 1);
}

TEST(TimingJson, GoesBothWays) {
  ReadingSpec spec{10, 50, true, 4e-4, 7, true, 8.5};
  EXPECT_EQ(to_json(reading_spec_from_json(to_json(spec))), to_json(spec));
  EXPECT_EQ(to_json(spec)["span_s"], 4e-4);
  std::vector<Reading> readings = {{1e-5, 2e-5, 1980, 3, 0.01}, {NAN, 2e-5, 0, 0, 0}};
  auto back = readings_from_json(Json::parse(to_json(readings).dump()));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].reference_s, 1e-5);
  EXPECT_EQ(back[0].candidate_s, 2e-5);
  EXPECT_EQ(back[0].clock_mhz, 1980);
  EXPECT_EQ(back[0].place, 3);
  EXPECT_EQ(back[0].seconds, 0.01);
  EXPECT_FALSE(is_good(back[1]));
}

}  // namespace
}  // namespace tritonrl::timing_protocol_test
