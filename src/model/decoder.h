// SPDX-License-Identifier: Apache-2.0
// Decoder: weights plus a key-value cache, driven row by row. Prefill and decoding are the same call.
//
// The cache has `slots` sequences of up to `capacity` positions. A row is one token of one slot at one position; rows
// of one call are computed together, and a row sees every position of its slot up to its own, including those of the
// same call. On the CPU a row's result does not depend on which other rows share the call (cpu/kernels.h), bit for bit.
//
// On a GPU a decoding step (logits of every row are wanted) is recorded as a CUDA graph (cuda/graph.h), for a few
// numbers of rows up to which others are filled with rows of a slot that nobody else uses: launching a small model's
// kernels one by one takes longer than running them. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/cuda/graph.h"
#include "model/files/weights.h"

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
  // `wanted` (indices into rows). They hold until the next call.
  at::Tensor run(std::span<const DecoderRow> rows, std::span<const int64_t> wanted);

  // Copies the first `length` positions of one slot to another: prompts shared by a group are computed once.
  void copy_prefix(int64_t from_slot, int64_t to_slot, int64_t length);

  int64_t slots() const { return slots_; }
  int64_t capacity() const { return capacity_; }
  const Weights& weights() const { return *weights_; }

 private:
  // A recorded step of so many rows, over caches of so many positions.
  struct Step {
    at::Tensor columns_3T;
    std::unique_ptr<cuda::Graph> graph;  // Null until it is wanted a second time.
  };
  // columns: token, slot and position of each row, on the device. `longest`: a row sees so many positions at most.
  // `wanted`: undefined = every row.
  at::Tensor compute(const at::Tensor& columns_3T, int64_t longest, const at::Tensor& wanted);
  at::Tensor step(const at::Tensor& columns_3T, int64_t longest);

  std::shared_ptr<const Weights> weights_;
  int64_t slots_, capacity_;
  at::Tensor cache_;                                   // [layers][k, v][slots][kv_heads][capacity][D].
  std::vector<at::Tensor> k_cache_, v_cache_;          // Its parts, one a layer.
  std::unique_ptr<cuda::Graphs> graphs_;               // Null: steps are not recorded.
  std::map<std::pair<int64_t, int64_t>, Step> steps_;  // By rows and longest.
  at::Tensor logits_;                                  // Where all steps leave them.
};

}  // namespace tritonrl
