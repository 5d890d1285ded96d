// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/timing_protocol.h"

#include <cmath>

#include "base/stats.h"

namespace tritonrl {

bool is_good(const Reading& reading) {
  auto positive = [](double seconds) { return std::isfinite(seconds) && seconds > 0; };
  return positive(reading.reference_s) && positive(reading.candidate_s);
}

double noise_band_of(const std::vector<double>& ratios) {
  double sum = 0;
  int64_t count = 0;
  for (double ratio : ratios) {
    if (!std::isfinite(ratio) || ratio <= 0) continue;
    sum += std::log(ratio) * std::log(ratio);
    ++count;
  }
  if (count == 0) return 0;
  return student_t_quantile(0.99, count) * std::sqrt(sum / static_cast<double>(count));
}

void apply_band(TimingResult* result, double band) {
  result->noise_band = band;
  bool unsure = result->ratio_low < result->ratio_high && result->ratio_low <= 1 && 1 <= result->ratio_high;
  result->speedup = unsure || std::abs(result->ratio - 1) <= band ? 1.0 : result->ratio;
}

std::optional<TimingResult> PlainMean::reduce(const std::vector<Reading>& readings) const {
  std::vector<double> reference, candidate;
  for (const Reading& reading : readings) {
    if (!is_good(reading)) continue;
    reference.push_back(reading.reference_s);
    candidate.push_back(reading.candidate_s);
  }
  if (reference.size() < kLeastReadings) return std::nullopt;
  TimingResult result;
  result.reference_s = mean(reference);
  result.candidate_s = mean(candidate);
  result.ratio = result.reference_s / result.candidate_s;
  result.readings = static_cast<int64_t>(reference.size());
  result.discarded = static_cast<int64_t>(readings.size()) - result.readings;
  if (!std::isfinite(result.ratio) || result.ratio <= 0) return std::nullopt;
  return result;
}

}  // namespace tritonrl
