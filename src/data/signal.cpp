// SPDX-License-Identifier: Apache-2.0
#include "data/signal.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "base/stats.h"

namespace tritonrl {

namespace {

constexpr int64_t kColumns = 64;
constexpr double kLongest = 16;          // Real rows are up to so many times longer than ours: sums grow with them.
constexpr double kLargestValue = 1e4;    // Values beyond this: errors of float32 start to show.
constexpr double kSmallestRange = 0.05;  // A value whose largest samples are below this might as well be 0.
constexpr double kMatters = 0.02;        // Smallest relative change that counts.
constexpr double kNotConstant = 5e-3;    // Smallest deviation relative to the largest value.

bool in_domain(Domain domain, const Signal& x, const std::vector<const Signal*>& others) {
  switch (domain) {
    case Domain::kAny:
      return true;
    case Domain::kSmall:
      return x.high <= 6.0;
    case Domain::kNotNegative:
      return x.low >= 0.0;
    case Domain::kPositive:
      return x.low >= 0.1;
    case Domain::kDivisor:
      return others.back()->low >= 0.1;
  }
  return false;
}

double at(const Signal& signal, double share) { return signal.low + (signal.high - signal.low) * share; }

// Range of the result, from a grid over the ranges of the operands.
void set_range(Signal& result, const Step& step, const Signal& x, const std::vector<const Signal*>& others) {
  constexpr int kFine = 64, kCoarse = 4;
  result.low = INFINITY;
  result.high = -INFINITY;
  int y_steps = others.empty() ? 0 : kCoarse, z_steps = others.size() < 2 ? 0 : kCoarse;
  for (int i = 0; i <= kFine; ++i) {
    for (int j = 0; j <= y_steps; ++j) {
      for (int k = 0; k <= z_steps; ++k) {
        double v[3] = {at(x, double(i) / kFine), y_steps ? at(*others[0], double(j) / kCoarse) : 0,
                       z_steps ? at(*others[1], double(k) / kCoarse) : 0};
        double value = step.op->value(v, step.attributes.data());
        result.low = std::min(result.low, value);
        result.high = std::max(result.high, value);
      }
    }
  }
}

double value_at(const Step& step, const Signal& x, const std::vector<const Signal*>& others, size_t i, size_t shift) {
  double v[3] = {x.samples[i], 0, 0};
  for (size_t k = 0; k < others.size(); ++k) v[k + 1] = others[k]->samples[(i + shift) % others[k]->samples.size()];
  return step.op->value(v, step.attributes.data());
}

// Share of the most frequent value, as relu or clamp leave it: near 0 for a value that is spread out.
double saturated_share(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    run = i > 0 && values[i] == values[i - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  return static_cast<double>(longest - 1) / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (double value : values) out = std::max(out, std::abs(value));
  return out;
}

}  // namespace

const Signal& Signal::input(size_t index, bool positive) {
  constexpr size_t kInputs = 4;
  static const auto made = [] {
    std::vector<Signal> signals(2 * kInputs);
    for (size_t i = 0; i < signals.size(); ++i) {
      bool uniform = i >= kInputs;
      Rng rng = Rng(0).at("signal").at(i);
      for (int64_t k = 0; k < kRows * kColumns; ++k)
        signals[i].samples.push_back(uniform ? 0.5 + rng.uniform() : rng.normal());
      signals[i].low = uniform ? 0.5 : -5;
      signals[i].high = uniform ? 1.5 : 5;
    }
    return signals;
  }();
  CHECK(index < kInputs) << "input " << index;
  return made[index + (positive ? kInputs : 0)];
}

Signal Signal::product(double deviation) {
  Signal signal = input(3, false);
  for (double& value : signal.samples) value *= deviation;
  signal.low = -8 * deviation;
  signal.high = 8 * deviation;
  return signal;
}

std::optional<Signal> apply_step(const Step& step, const Signal& x, const std::vector<const Signal*>& others) {
  if (!in_domain(step.op->domain, x, others)) return std::nullopt;
  Signal result;
  set_range(result, step, x, others);
  if (!(std::abs(result.low) <= kLargestValue && std::abs(result.high) <= kLargestValue)) return std::nullopt;
  double change = 0, influence = 0, size = 0;
  for (size_t i = 0; i < x.samples.size(); ++i) {
    double value = value_at(step, x, others, i, 0);
    result.samples.push_back(value);
    size += std::abs(x.samples[i]);
    change += std::abs(value - x.samples[i]);
    influence += std::abs(value - value_at(step, x, others, i, 1));
  }
  double deviation = stddev(result.samples), count = static_cast<double>(x.samples.size());
  double top = largest(result.samples);
  bool constant = top < kSmallestRange || deviation < kNotConstant * top;
  bool same = change < kMatters * size;
  bool ignores = !others.empty() && influence < kMatters * deviation * count;
  bool few = x.samples.size() == static_cast<size_t>(Signal::kRows);
  bool saturated = saturated_share(result.samples) > (few ? 0.1 : 0.75);
  if (constant || same || ignores || saturated) return std::nullopt;
  return result;
}

std::optional<Signal> apply_row_core(const Core& core, const Signal& x) {
  auto columns = x.samples.size() / static_cast<size_t>(Signal::kRows);
  double n = static_cast<double>(columns);
  Signal result;
  for (size_t row = 0; row < static_cast<size_t>(Signal::kRows); ++row) {
    const double* v = x.samples.data() + row * columns;
    double sum = 0, absolute = 0, squares = 0, top = v[0], bottom = v[0], deviations = 0, exponentials = 0;
    for (size_t i = 0; i < columns; ++i) {
      sum += v[i];
      absolute += std::abs(v[i]);
      squares += v[i] * v[i];
      top = std::max(top, v[i]);
      bottom = std::min(bottom, v[i]);
    }
    bool negated = core.op == "softmin";
    for (size_t i = 0; i < columns; ++i) {
      deviations += (v[i] - sum / n) * (v[i] - sum / n);
      exponentials += std::exp(negated ? bottom - v[i] : v[i] - top);
    }
    double log_total = top + std::log(exponentials), root = std::sqrt(squares / n + core.eps);
    if (core.op == "sum") result.samples.push_back(sum);
    if (core.op == "mean") result.samples.push_back(sum / n);
    if (core.op == "amax") result.samples.push_back(top);
    if (core.op == "amin") result.samples.push_back(bottom);
    if (core.op == "l1_norm") result.samples.push_back(absolute);
    if (core.op == "l2_norm") result.samples.push_back(std::sqrt(squares));
    if (core.op == "logsumexp") result.samples.push_back(log_total);
    if (core.op == "var") result.samples.push_back(deviations / n);
    if (core.op == "std") result.samples.push_back(std::sqrt(deviations / n));
    for (size_t i = 0; i < columns; ++i) {
      if (core.op == "softmax") result.samples.push_back(std::exp(v[i] - log_total));
      if (core.op == "softmin") result.samples.push_back(std::exp(bottom - v[i]) / exponentials);
      if (core.op == "log_softmax") result.samples.push_back(v[i] - log_total - std::log(kLongest));
      if (core.op == "layer_norm") result.samples.push_back((v[i] - sum / n) / std::sqrt(deviations / n + core.eps));
      if (core.op == "rms_norm") result.samples.push_back(v[i] / root);
      if (core.op == "normalize") result.samples.push_back(v[i] / (core.p == 1 ? absolute : std::sqrt(squares)));
    }
  }
  CHECK(!result.samples.empty()) << "no row operator '" << core.op << "'";
  if (result.samples.size() == static_cast<size_t>(Signal::kRows)) {
    double top = largest(result.samples);
    if (top < kSmallestRange || stddev(result.samples) < kNotConstant * top) return std::nullopt;
  }
  double reach = kLongest * largest(result.samples);
  bool sums = core.op == "sum" || core.op == "l1_norm" || core.op == "l2_norm";
  bool norm = core.op == "layer_norm" || core.op == "rms_norm";
  bool negative = *std::min_element(result.samples.begin(), result.samples.end()) < 0;
  bool share = core.op == "normalize" || core.op == "softmax" || core.op == "softmin";
  double wide = sums ? reach : norm ? 10.0 : share ? 1.0 : 2 * largest(result.samples) + 4;
  result.high = wide;
  result.low = negative ? -wide : 0.0;
  return result;
}

}  // namespace tritonrl
