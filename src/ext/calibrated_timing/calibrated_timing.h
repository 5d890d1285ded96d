// SPDX-License-Identifier: Apache-2.0
// CalibratedTiming: a TimingProtocol that reads until it is sure.
//
// Warm-ups, a flushed L2 cache, interleaved pairs, everything moved through the memory between groups of readings. The
// ratio is the trimmed mean of the pairs' log-ratios, so that neither a hiccup nor a slow drift of the clock, which
// both of a pair share, decides. Readings taken at another SM clock than the median one are dropped and counted. The 95
// % interval is Student's, of the trimmed mean (winsorised variance; Tukey and McLaughlin, 1963), and never narrower
// than the one that the means of the places give: readings of one place are not independent. Reading ends when the
// interval is narrow enough, or enough time was spent.
#pragma once

#include "base/config.h"
#include "verify/execute/timing_protocol.h"

namespace tritonrl::calibrated_timing {

struct Options {
  int64_t warm_ups = 10;
  int64_t least_readings = 50, most_readings = 400;
  int64_t least_slow_readings = 25;  // Enough where a pair of runs takes slow_s.
  double slow_s = 2e-3;
  int64_t readings_per_place = 10;
  double span_s = 400e-6;          // Device time in one reading: well above an event's resolution.
  double trim = 0.1;               // Share of the readings that is left out at either end.
  double clock_tolerance = 0.02;   // How far from the median clock a reading may be.
  double half_width = 0.005;       // Of the interval, relative: half of the narrowest band.
  double short_s = 50e-6;          // Pairs shorter than this have noise that more readings hardly lessen:
  double short_half_width = 0.01;  // this much will do.
  double far = 0.1;                // Where the interval is this far from 1, four times that width will do.
  double most_s = 8;               // Wall clock of all readings; slow computations get fewer readings.
  double least_band = 0.01;        // Computations other than those at start were off by up to 0.83 % (README.md).
};

class CalibratedTiming : public TimingProtocol {
 public:
  struct Config {
    int64_t readings = 50;
    double half_width = 0.005;

    template <class V>
    void for_each_field(V& v) {
      v("readings", readings, "at least so many readings");
      v("half_width", half_width,
        "and until the 95 % interval of the ratio is as narrow as this, relative; 0.03 takes about a tenth of the time "
        "of 0.005");
    }
    void validate() const;
  };

  explicit CalibratedTiming(Options options = {});  // CHECK-fails for options that make no sense.
  explicit CalibratedTiming(const Config& config);  // Throws as validate().
  ReadingSpec spec() const override;
  bool want_more(const std::vector<Reading>& readings) const override;
  std::optional<TimingResult> reduce(const std::vector<Reading>& readings) const override;
  double least_band() const override { return options_.least_band; }

 private:
  Options options_;
};

}  // namespace tritonrl::calibrated_timing
