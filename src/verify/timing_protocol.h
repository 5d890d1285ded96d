// SPDX-License-Identifier: Apache-2.0
// TimingProtocol: the seam that says how many readings to take and what they amount to. Pure arithmetic; the readings
// come from the replayer. Where there is no GPU nothing is read, and a speedup is `not measured`.
#pragma once

#include <optional>
#include <vector>

#include "base/stats.h"

namespace tritonrl {

struct Reading {
  double reference_s = 0, candidate_s = 0;  // One interleaved pair of launches.
};

class TimingProtocol {
 public:
  virtual ~TimingProtocol() = default;
  virtual int64_t warm_ups() const = 0;
  virtual bool want_more(const std::vector<Reading>& readings) const = 0;
  // Reference time / candidate time, or nothing when the readings do not give one.
  virtual std::optional<double> reduce(const std::vector<Reading>& readings) const = 0;
};

// One warm-up, five readings, plain mean.
class PlainMean : public TimingProtocol {
 public:
  int64_t warm_ups() const override { return 1; }
  bool want_more(const std::vector<Reading>& readings) const override { return readings.size() < 5; }
  std::optional<double> reduce(const std::vector<Reading>& readings) const override {
    double reference = 0, candidate = 0;
    for (const Reading& reading : readings) {
      reference += reading.reference_s;
      candidate += reading.candidate_s;
    }
    if (readings.empty() || candidate <= 0 || reference <= 0) return std::nullopt;
    return reference / candidate;
  }
};

}  // namespace tritonrl
