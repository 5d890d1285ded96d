// SPDX-License-Identifier: Apache-2.0
// Decoder: weights plus a key-value cache, driven row by row. Prefill and decoding are the same call.
//
// The cache has `slots` sequences of up to `capacity` positions. A row is one token of one slot at one position; rows
// of one call are computed together, and a row sees every position of its slot up to its own, including those of the
// same call. On the CPU a row's result does not depend on which other rows share the call (cpu/kernels.h), bit for bit.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/weights.h"

namespace tritonrl {

struct DecoderRow {
  int32_t token = 0;
  int32_t slot = 0;
  int32_t position = 0;  // Positions of a slot are written in order, starting at 0.
};

class Decoder {
 public:
  Decoder(std::shared_ptr<const Weights> weights, int64_t slots, int64_t capacity);

  // Computes all rows and returns logits [wanted.size(), vocab] (float, on the weights' device) of those named in
  // `wanted` (indices into rows).
  at::Tensor run(std::span<const DecoderRow> rows, std::span<const int64_t> wanted);

  // Copies the first `length` positions of one slot to another: prompts shared by a group are computed once.
  void copy_prefix(int64_t from_slot, int64_t to_slot, int64_t length);

  int64_t slots() const { return slots_; }
  int64_t capacity() const { return capacity_; }
  const Weights& weights() const { return *weights_; }

 private:
  std::shared_ptr<const Weights> weights_;
  int64_t slots_, capacity_;
  at::Tensor cache_;                           // [layers][k, v][slots][kv_heads][capacity][D].
  std::vector<at::Tensor> k_cache_, v_cache_;  // Its parts, one a layer.
};

}  // namespace tritonrl
