// SPDX-License-Identifier: Apache-2.0
#include "base/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tritonrl {

Interval wilson(int64_t k, int64_t n, double z) {
  CHECK(0 <= k && k <= n) << "wilson(" << k << ", " << n << ")";
  if (n == 0) return {0, 1};
  double count = static_cast<double>(n), p = static_cast<double>(k) / count, z2 = z * z;
  double centre = (p + z2 / (2 * count)) / (1 + z2 / count);
  double half = z / (1 + z2 / count) * std::sqrt(p * (1 - p) / count + z2 / (4 * count * count));
  return {k == 0 ? 0 : std::max(0.0, centre - half), k == n ? 1 : std::min(1.0, centre + half)};
}

double pass_at_k(int64_t n, int64_t c, int64_t k) {
  CHECK(0 <= c && c <= n && 1 <= k && k <= n) << "pass_at_k(" << n << ", " << c << ", " << k << ")";
  if (n - c < k) return 1;
  double none = 1;
  for (int64_t i = n - c + 1; i <= n; ++i) none *= 1.0 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double stddev(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double m = mean(values), sum = 0;
  for (double v : values) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double trimmed_mean(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  auto cut = static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
  if (2 * cut < static_cast<std::ptrdiff_t>(values.size())) {
    values.erase(values.end() - cut, values.end());
    values.erase(values.begin(), values.begin() + cut);
  }
  return mean(values);
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  double position = p / 100 * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(position);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace tritonrl
