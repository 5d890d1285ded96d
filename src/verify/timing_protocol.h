// SPDX-License-Identifier: Apache-2.0
// TimingProtocol: the seam that says how many readings to take and what they amount to. Pure arithmetic; the readings
// come from the replayer. Where there is no GPU nothing is read, and a speedup is `not measured`.
#pragma once

#include <optional>
#include <vector>

#include "base/stats.h"

namespace tritonrl {

struct Reading {
  double reference_s = 0, candidate_s = 0;  // One interleaved pair of runs, device time.
};

// What a candidate's time amounts to.
struct TimingResult {
  double reference_s = 0, candidate_s = 0;  // As the protocol reduces them.
  double ratio = 0;                         // reference / candidate, as measured.
  double speedup = 0;                       // The same; 1 where the ratio lies within the noise band.
  double noise_band = 0;                    // How far from 1 the ratio of equals gets at this duration.
  int64_t readings = 0;
};

class TimingProtocol {
 public:
  virtual ~TimingProtocol() = default;
  virtual int64_t warm_ups() const = 0;
  virtual int64_t batch() const = 0;  // Readings taken in one go, before want_more() is asked.
  virtual bool cold() const = 0;      // Is the L2 cache flushed before each run?
  virtual bool want_more(const std::vector<Reading>& readings) const = 0;
  // Seconds of the two, or nothing when the readings do not give any.
  virtual std::optional<Reading> reduce(const std::vector<Reading>& readings) const = 0;
};

// One warm-up, five readings, plain mean.
class PlainMean : public TimingProtocol {
 public:
  int64_t warm_ups() const override { return 1; }
  int64_t batch() const override { return 5; }
  bool cold() const override { return false; }
  bool want_more(const std::vector<Reading>& readings) const override { return readings.size() < 5; }
  std::optional<Reading> reduce(const std::vector<Reading>& readings) const override {
    Reading sum;
    for (const Reading& reading : readings) {
      sum.reference_s += reading.reference_s;
      sum.candidate_s += reading.candidate_s;
    }
    if (readings.empty() || sum.candidate_s <= 0 || sum.reference_s <= 0) return std::nullopt;
    auto count = static_cast<double>(readings.size());
    return Reading{sum.reference_s / count, sum.candidate_s / count};
  }
};

}  // namespace tritonrl
