// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <algorithm>

#include "base/check.h"

namespace tritonrl {

Decoder::Decoder(std::shared_ptr<const Weights> weights, int64_t slots, int64_t capacity)
    : weights_(std::move(weights)), slots_(slots), capacity_(capacity) {
  const ModelConfig& c = weights_->config;
  CHECK(slots > 0 && capacity > 0 && capacity <= weights_->rope.cos.size(0)) << slots << " slots of " << capacity;
  auto options = at::TensorOptions().dtype(weights_->dtype).device(weights_->device);
  cache_ = at::zeros({c.layers, 2, slots, c.kv_heads, capacity, c.head_dim}, options);
  for (int64_t l = 0; l < c.layers; ++l) {
    k_cache_.push_back(cache_[l][0]);
    v_cache_.push_back(cache_[l][1]);
  }
}

at::Tensor Decoder::run(std::span<const DecoderRow> rows, std::span<const int64_t> wanted) {
  const Weights& w = *weights_;
  const ModelConfig& c = w.config;
  auto count = static_cast<int64_t>(rows.size());
  at::Tensor columns = at::empty({3, count}, at::kInt);  // token, slot, position.
  int32_t* data = columns.data_ptr<int32_t>();
  int64_t longest = 0;
  for (int64_t r = 0; r < count; ++r) {
    const DecoderRow& row = rows[static_cast<size_t>(r)];
    CHECK(row.position < capacity_ && row.slot < slots_) << "slot " << row.slot << " position " << row.position;
    data[r] = row.token;
    data[count + r] = row.slot;
    data[2 * count + r] = row.position;
    longest = std::max<int64_t>(longest, row.position + 1);
  }
  columns = columns.to(w.device);
  auto token = columns[0], position = columns[2];
  HeadCounts counts{c.heads, c.kv_heads, c.head_dim};
  CacheRows cache_rows = make_cache_rows(columns[1], position, longest, counts, capacity_);

  at::Tensor x = w.embedding_VH.index_select(0, token).to(at::kFloat);
  for (size_t l = 0; l < w.layers.size(); ++l) {
    const LayerWeights& layer = w.layers[l];
    at::Tensor qkv = linear(layer.qkv, rms_norm(x, layer.input_norm_H, c.rms_norm_eps, w.dtype));
    rope_(qkv, c.heads + c.kv_heads, c.head_dim, position, w.rope);
    store_cache(qkv, k_cache_[l], v_cache_[l], cache_rows, counts);
    at::Tensor attended = attend_cache(qkv, k_cache_[l], v_cache_[l], cache_rows, counts);
    linear_add_(layer.o, attended, x);
    at::Tensor gate_up = linear(layer.gate_up, rms_norm(x, layer.post_norm_H, c.rms_norm_eps, w.dtype));
    linear_add_(layer.down, swiglu(gate_up), x);
  }
  at::Tensor index = at::empty({static_cast<int64_t>(wanted.size())}, at::kLong);
  std::copy(wanted.begin(), wanted.end(), index.data_ptr<int64_t>());
  at::Tensor last = x.index_select(0, index.to(w.device));
  return linear_float(w.head, rms_norm(last, w.final_norm_H, c.rms_norm_eps, w.dtype));
}

void Decoder::copy_prefix(int64_t from_slot, int64_t to_slot, int64_t length) {
  auto part = [&](int64_t slot) { return cache_.select(2, slot).slice(3, 0, length); };
  part(to_slot).copy_(part(from_slot));
}

}  // namespace tritonrl
