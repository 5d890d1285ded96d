// SPDX-License-Identifier: Apache-2.0
#include "policy/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "model/cpu/kernels.h"

namespace tritonrl {

void SamplingConfig::validate() const {
  if (temperature < 0) throw usage_error("temperature must not be negative");
  if (top_k < 0) throw usage_error("top_k must not be negative", "", "0 switches it off");
  if (top_p <= 0 || top_p > 1) throw usage_error("top_p must lie in (0, 1]");
  if (max_new_tokens < 1) throw usage_error("max_new_tokens must be at least 1");
}

namespace {

struct Ranked {
  float scaled;
  int32_t id;
  bool operator<(const Ranked& other) const { return scaled != other.scaled ? scaled > other.scaled : id < other.id; }
};

// The tokens top-k and top-p leave, most likely first. `total` is the sum of exp(scaled - maximum) over the vocabulary.
std::vector<Ranked> truncated(const float* logits, int64_t limit, const SamplingConfig& config, float scale,
                              float maximum, double total) {
  std::vector<Ranked> all;
  for (int64_t i = 0; i < limit; ++i) {
    float scaled = logits[i] * scale;
    if (scaled >= maximum - 40) all.push_back({scaled, static_cast<int32_t>(i)});  // The rest holds less than 1e-11.
  }
  if (config.top_k > 0 && config.top_k < static_cast<int64_t>(all.size())) {
    std::nth_element(all.begin(), all.begin() + config.top_k, all.end());
    all.resize(static_cast<size_t>(config.top_k));
    total = 0;
    for (const auto& item : all) total += std::exp(item.scaled - maximum);
  }
  std::sort(all.begin(), all.end());
  if (config.top_p < 1) {
    double sum = 0;
    size_t keep = 0;
    while (keep < all.size() && sum < config.top_p * total) sum += std::exp(all[keep++].scaled - maximum);
    all.resize(std::max<size_t>(keep, 1));
  }
  return all;
}

}  // namespace

SampledToken sample_token(const float* logits, int64_t limit, const SamplingConfig& config, Rng rng) {
  bool greedy = config.temperature == 0;
  float scale = greedy ? 1.0f : static_cast<float>(1 / config.temperature), maximum = 0, sum = 0;
  cpu::kernels().softmax_stats(logits, limit, scale, &maximum, &sum);
  auto result = [&](int64_t id) {
    return SampledToken{static_cast<int32_t>(id), logits[id] * scale - maximum - std::log(sum)};
  };
  if (greedy) return result(std::max_element(logits, logits + limit) - logits);
  double u = rng.uniform();
  if (config.top_k == 0 && config.top_p == 1) {
    double left = u * sum;
    int64_t last = 0;
    for (int64_t i = 0; i < limit; ++i) {
      double p = std::exp(logits[i] * scale - maximum);
      if (p > 0) last = i;
      if (left < p) return result(i);
      left -= p;
    }
    return result(last);  // Rounding left a crumb.
  }
  auto kept = truncated(logits, limit, config, scale, maximum, sum);
  double total = 0;
  for (const auto& item : kept) total += std::exp(item.scaled - maximum);
  double left = u * total;
  for (const auto& item : kept) {
    double p = std::exp(item.scaled - maximum);
    if (left < p) return result(item.id);
    left -= p;
  }
  return result(kept.back().id);
}

}  // namespace tritonrl
