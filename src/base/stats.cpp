// SPDX-License-Identifier: Apache-2.0
#include "base/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tritonrl {
namespace {

// Of the standard normal distribution, by bisection.
double normal_quantile(double p) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

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

double student_t_quantile(double p, int64_t df) {
  CHECK(0.5 <= p && p < 1 && df >= 1) << "student_t_quantile(" << p << ", " << df << ")";
  if (p == 0.5) return 0;
  double tails = 2 * (1 - p), n = static_cast<double>(df);
  if (df == 1) return 1 / std::tan(tails * M_PI / 2);
  if (df == 2) return std::sqrt(2 / (tails * (2 - tails)) - 2);
  double a = 1 / (n - 0.5), b = 48 / (a * a);
  double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
  double d = ((94.5 / (b + c) - 3) / b + 1) * std::sqrt(a * M_PI / 2) * n;
  double y = std::pow(d * tails, 2 / n);
  if (y > 0.05 + a) {
    double x = -normal_quantile(p);
    y = x * x;
    if (df < 5) c += 0.3 * (n - 4.5) * (x + 0.6);
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b;
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
    y = std::expm1(a * y * y);
  } else {
    y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) / (n + 2) +
        1 / y;
  }
  return std::sqrt(n * y);
}

}  // namespace tritonrl
