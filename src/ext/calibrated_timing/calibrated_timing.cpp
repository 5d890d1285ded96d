// SPDX-License-Identifier: Apache-2.0
#include "ext/calibrated_timing/calibrated_timing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/stats.h"

namespace tritonrl::calibrated_timing {
namespace {

constexpr size_t kLeastSlow = 6;       // Readings that are enough when time is out.
constexpr size_t kLeastPlaces = 4;     // Whose means give an interval of their own.
constexpr double kConfidence = 0.975;  // Two-sided 95 %.

// Half the width of the interval of a mean of `values`.
double half_width_of_mean(const std::vector<double>& values) {
  auto n = static_cast<int64_t>(values.size());
  return student_t_quantile(kConfidence, n - 1) * stddev(values) / std::sqrt(static_cast<double>(n));
}

// The same of their trimmed mean.
double half_width_of_trimmed_mean(std::vector<double> values, double trim) {
  auto n = static_cast<int64_t>(values.size());
  auto cut = static_cast<int64_t>(static_cast<double>(n) * trim);
  std::sort(values.begin(), values.end());
  for (int64_t i = 0; i < cut; ++i) {
    values[static_cast<size_t>(i)] = values[static_cast<size_t>(cut)];
    values[static_cast<size_t>(n - 1 - i)] = values[static_cast<size_t>(n - 1 - cut)];
  }
  double kept = 1 - 2 * static_cast<double>(cut) / static_cast<double>(n);
  return student_t_quantile(kConfidence, n - 2 * cut - 1) * stddev(values) / (kept * std::sqrt(static_cast<double>(n)));
}

// Readings that are numbers, at about the median clock.
std::vector<Reading> good_readings(const std::vector<Reading>& readings, double tolerance) {
  std::vector<Reading> good;
  std::vector<double> clocks;
  auto has_clock = [](const Reading& reading) { return std::isfinite(reading.clock_mhz) && reading.clock_mhz > 0; };
  for (const Reading& reading : readings) {
    if (!is_good(reading)) continue;
    good.push_back(reading);
    if (has_clock(reading)) clocks.push_back(reading.clock_mhz);
  }
  double usual = percentile(clocks, 50);
  std::erase_if(good, [&](const Reading& reading) {
    return has_clock(reading) && std::abs(reading.clock_mhz / usual - 1) > tolerance;
  });
  return good;
}

Options options_of(const CalibratedTiming::Config& config) {
  config.validate();
  Options options;
  options.least_readings = config.readings;
  options.least_slow_readings = std::min(options.least_slow_readings, config.readings);
  options.readings_per_place = std::clamp<int64_t>(config.readings / 5, 2, options.readings_per_place);
  options.half_width = config.half_width;
  options.short_half_width = std::max(options.short_half_width, config.half_width);
  return options;
}

}  // namespace

void CalibratedTiming::Config::validate() const {
  if (readings < 10 || readings > 400) throw usage_error("readings must lie in [10, 400]");
  if (!(half_width > 0 && half_width <= 0.5)) throw usage_error("half_width must lie in (0, 0.5]");
}

CalibratedTiming::CalibratedTiming(const Config& config) : CalibratedTiming(options_of(config)) {}

CalibratedTiming::CalibratedTiming(Options options) : options_(options) {
  CHECK(options_.warm_ups >= 1 && options_.least_readings >= 10 && options_.most_readings >= options_.least_readings &&
        options_.readings_per_place >= 1 && options_.span_s >= 0 && options_.trim >= 0 && options_.trim <= 0.25 &&
        options_.clock_tolerance > 0 && options_.half_width > 0 && options_.short_half_width > 0 &&
        options_.most_s > 0 && options_.least_band >= 0)
      << "options of calibrated timing";
}

ReadingSpec CalibratedTiming::spec() const {
  ReadingSpec spec;
  spec.warm_ups = options_.warm_ups;
  spec.batch = std::min(options_.least_slow_readings, options_.least_readings);
  spec.cold = true;
  spec.span_s = options_.span_s;
  spec.readings_per_place = options_.readings_per_place;
  spec.clock = true;
  spec.budget_s = options_.most_s;
  return spec;
}

bool CalibratedTiming::want_more(const std::vector<Reading>& readings) const {
  double spent_s = 0;
  for (const Reading& reading : readings)
    spent_s += std::isfinite(reading.seconds) ? std::max(reading.seconds, 0.0) : 0;
  auto count = static_cast<int64_t>(readings.size());
  if (count >= options_.most_readings || (readings.size() >= kLeastSlow && spent_s >= options_.most_s)) return false;
  auto result = reduce(readings);
  bool slow = result && result->reference_s + result->candidate_s >= options_.slow_s;
  if (count < (slow ? options_.least_slow_readings : options_.least_readings)) return true;
  if (!result) return true;
  bool far = result->ratio_low > 1 + options_.far || result->ratio_high < 1 / (1 + options_.far);
  bool is_short = result->reference_s + result->candidate_s < options_.short_s;
  double wanted = is_short ? options_.short_half_width : options_.half_width;
  return std::log(result->ratio_high / result->ratio_low) / 2 > (far ? 4 : 1) * wanted;
}

std::optional<TimingResult> CalibratedTiming::reduce(const std::vector<Reading>& readings) const {
  std::vector<Reading> good = good_readings(readings, options_.clock_tolerance);
  if (good.size() < kLeastReadings) return std::nullopt;
  std::vector<double> ratios, reference, candidate, clocks;
  std::map<int64_t, std::vector<double>> by_place;
  for (const Reading& reading : good) {
    ratios.push_back(std::log(reading.reference_s / reading.candidate_s));
    reference.push_back(reading.reference_s);
    candidate.push_back(reading.candidate_s);
    if (reading.clock_mhz > 0) clocks.push_back(reading.clock_mhz);
    by_place[reading.place].push_back(ratios.back());
  }
  double centre = trimmed_mean(ratios, options_.trim);
  double half = half_width_of_trimmed_mean(ratios, options_.trim);
  if (by_place.size() >= kLeastPlaces) {
    std::vector<double> places;
    for (const auto& [place, values] : by_place) places.push_back(trimmed_mean(values, options_.trim));
    half = std::max(half, half_width_of_mean(places));
  }
  TimingResult result;
  result.reference_s = trimmed_mean(reference, options_.trim);
  result.candidate_s = trimmed_mean(candidate, options_.trim);
  result.ratio = std::exp(centre);
  result.ratio_low = std::exp(centre - half);
  result.ratio_high = std::exp(centre + half);
  result.readings = static_cast<int64_t>(good.size());
  result.discarded = static_cast<int64_t>(readings.size() - good.size());
  result.clock_mhz = percentile(clocks, 50);
  if (!std::isfinite(result.ratio) || result.ratio <= 0 || !std::isfinite(result.ratio_high)) return std::nullopt;
  return result;
}

}  // namespace tritonrl::calibrated_timing
