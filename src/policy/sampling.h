// SPDX-License-Identifier: Apache-2.0
// Picks the next token from a row of logits.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "base/rng.h"

namespace tritonrl {

struct SamplingConfig {
  double temperature = 0.8;  // 0 = greedy.
  int64_t top_k = 0;         // Keep the k most likely tokens; 0 = all.
  double top_p = 1.0;        // Then keep the smallest set with at least this probability; 1 = all.
  int64_t max_new_tokens = 512;

  template <class V>
  void for_each_field(V& v) {
    v("temperature", temperature, "0 = greedy");
    v("top_k", top_k, "keep the k most likely tokens; 0 = all");
    v("top_p", top_p, "keep the smallest set of at least this probability; 1 = all");
    v("max_new_tokens", max_new_tokens, "longest answer, in tokens");
  }
  void validate() const;
};

struct SampledToken {
  int32_t token = 0;
  // log softmax(logits / temperature)[token], over the whole vocabulary: before top-k and top-p. Greedy: temperature 1.
  float log_prob = 0;
};

// logits: `limit` floats; ids at or above limit (padding rows of the head) can never be drawn.
// Consumes exactly one uniform of `rng` unless greedy. Ties go to the smaller id.
SampledToken sample_token(const float* logits, int64_t limit, const SamplingConfig& config, Rng rng);

}  // namespace tritonrl
