// SPDX-License-Identifier: Apache-2.0
// TimingProtocol: the seam that says how many readings to take and what they amount to. Pure arithmetic; the readings
// come from the replayer. Where there is no GPU nothing is read, and a speedup is `not measured`.
//
// Readings are raw: some may be no numbers at all, and a protocol drops those (and counts them). Fewer than three good
// ones are no measurement, which is our fault and never a reward.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace tritonrl {

// One interleaved pair: seconds of one run of each on the device, as the mean of a few runs.
struct Reading {
  double reference_s = 0, candidate_s = 0;
  double clock_mhz = 0;  // Of the SMs, right after; 0 = not read.
  int64_t place = 0;     // Readings of the same place worked in the same memory.
  double seconds = 0;    // Wall clock that taking it needed.
};

// How readings are to be taken.
struct ReadingSpec {
  int64_t warm_ups = 1;
  int64_t batch = 5;  // Readings taken in one go, before want_more() is asked.
  bool cold = false;  // Is the L2 cache flushed before each run?
  double span_s = 0;  // Runs are repeated until a reading covers this much device time; 0 = one run of each.
  int64_t readings_per_place = 0;  // After so many, everything moves to other places of the memory; 0 = it stays.
  bool clock = false;              // Is the SM clock read?
  double budget_s = 0;             // A batch ends early after this long, with at least six readings; 0 = never.
};

// What a candidate's time amounts to.
struct TimingResult {
  double reference_s = 0, candidate_s = 0;  // As the protocol reduces them.
  double ratio = 0;                         // reference / candidate, as measured.
  double speedup = 0;                       // The same; 1 where equals could have given it.
  double noise_band = 0;                    // How far from 1 the ratio of equals gets at this duration.
  int64_t readings = 0;                     // That were used.
  double ratio_low = 0, ratio_high = 0;     // 95 % interval of the ratio; both 0 = the protocol gives none.
  int64_t discarded = 0;                    // Readings that were no numbers, or taken at another clock.
  double clock_mhz = 0;                     // Median SM clock; 0 = not read.
  std::optional<int64_t> reference_bytes;   // What a forward pass takes at most beyond inputs and weights.
  std::optional<int64_t> candidate_bytes;   // The same of the candidate.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("reference_s", self.reference_s);
    v("candidate_s", self.candidate_s);
    v("ratio", self.ratio);
    v("speedup", self.speedup);
    v("noise_band", self.noise_band);
    v("readings", self.readings);
    v.optional("interval", std::tie(self.ratio_low, self.ratio_high), std::tuple(0.0, 0.0));
    v("discarded", self.discarded);
    v.optional("clock_mhz", self.clock_mhz);
    v.optional("reference_bytes", self.reference_bytes);
    v.optional("candidate_bytes", self.candidate_bytes);
  }
};

class TimingProtocol {
 public:
  virtual ~TimingProtocol() = default;
  virtual ReadingSpec spec() const = 0;
  virtual bool want_more(const std::vector<Reading>& readings) const = 0;
  // Everything but the band and what follows from it; nothing when the readings give no time. Thread rule: any thread.
  virtual std::optional<TimingResult> reduce(const std::vector<Reading>& readings) const = 0;
  // The band is never taken to be narrower: it is measured on few computations, and candidates are many.
  virtual double least_band() const = 0;
};

constexpr size_t kLeastReadings = 3;

// Both times are finite and positive.
bool is_good(const Reading& reading);

// How far from 1 the ratio of equals gets, one time in a hundred on either side, from the measured ratios of some. A
// Student t bound around 1, because such ratios are few. 0 when empty.
double noise_band_of(const std::vector<double>& ratios);

// Fills in noise_band and speedup: 1 where the ratio lies within the band or its interval holds 1.
void apply_band(TimingResult* result, double band);

// One warm-up, five readings, plain mean.
class PlainMean : public TimingProtocol {
 public:
  ReadingSpec spec() const override { return {}; }
  bool want_more(const std::vector<Reading>& readings) const override { return readings.size() < 5; }
  std::optional<TimingResult> reduce(const std::vector<Reading>& readings) const override;
  // A plain mean of a reference against itself is off by up to this much at any duration
  // (bench/results/h200_references.md).
  double least_band() const override { return 0.03; }
};

}  // namespace tritonrl
