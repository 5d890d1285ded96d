// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl {

namespace {

constexpr int64_t kPositions = 256;  // Recorded steps see a multiple of so many.

// Numbers of rows that steps are recorded for: four between one power of two and the next.
int64_t recorded_rows(int64_t count) {
  if (count <= 8) return count;
  auto unit = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)) / 4);
  return (count + unit - 1) / unit * unit;
}

}  // namespace

Decoder::Decoder(std::shared_ptr<const Weights> weights, int64_t slots, int64_t capacity)
    : weights_(std::move(weights)), slots_(slots), capacity_(capacity), graphs_(cuda::make_graphs(weights_->device)) {
  const ModelConfig& c = weights_->config;
  CHECK(slots > 0 && capacity > 0 && capacity <= weights_->rope.cos.size(0)) << slots << " slots of " << capacity;
  auto options = at::TensorOptions().dtype(weights_->dtype).device(weights_->device);
  cache_ = at::zeros({c.layers, 2, slots + (graphs_ ? 1 : 0), c.kv_heads, capacity, c.head_dim}, options);
  for (int64_t l = 0; l < c.layers; ++l) {
    k_cache_.push_back(cache_[l][0]);
    v_cache_.push_back(cache_[l][1]);
  }
}

at::Tensor Decoder::run(std::span<const DecoderRow> rows, std::span<const int64_t> wanted) {
  auto count = static_cast<int64_t>(rows.size());
  bool decodes = graphs_ && rows.size() == wanted.size() && count <= slots_;
  for (int64_t i = 0; decodes && i < count; ++i) decodes = wanted[static_cast<size_t>(i)] == i;
  int64_t size = decodes ? recorded_rows(count) : count, longest = 0;
  at::Tensor columns = at::zeros({3, size}, at::kInt);  // token, slot, position.
  int32_t* data = columns.data_ptr<int32_t>();
  std::fill(data + size, data + 2 * size, static_cast<int32_t>(slots_));  // Rows that fill up lie behind all slots.
  for (int64_t r = 0; r < count; ++r) {
    const DecoderRow& row = rows[static_cast<size_t>(r)];
    CHECK(row.position < capacity_ && row.slot < slots_) << "slot " << row.slot << " position " << row.position;
    data[r] = row.token;
    data[size + r] = row.slot;
    data[2 * size + r] = row.position;
    longest = std::max<int64_t>(longest, row.position + 1);
  }
  if (decodes) return step(columns, longest).slice(0, 0, count);
  at::Tensor index = at::empty({static_cast<int64_t>(wanted.size())}, at::kLong);
  std::copy(wanted.begin(), wanted.end(), index.data_ptr<int64_t>());
  return compute(columns.to(weights_->device), longest, index.to(weights_->device));
}

at::Tensor Decoder::step(const at::Tensor& columns_3T, int64_t longest) {
  int64_t rows = columns_3T.size(1);
  longest = std::min(capacity_, (longest + kPositions - 1) / kPositions * kPositions);
  Step& step = steps_[{rows, longest}];
  bool first = !step.columns_3T.defined();
  if (first) step.columns_3T = at::empty_like(columns_3T, columns_3T.options().device(weights_->device));
  step.columns_3T.copy_(columns_3T);
  if (!logits_.defined()) {
    logits_ = at::empty({recorded_rows(slots_), weights_->head.outputs}, step.columns_3T.options().dtype(at::kFloat));
  }
  auto work = [&] { logits_.slice(0, 0, rows).copy_(compute(step.columns_3T, longest, {})); };
  if (first) {
    graphs_->warm_up(work);
  } else {
    if (!step.graph) {
      try {
        step.graph = graphs_->record(work);
      } catch (const std::exception& e) {
        const auto* torch = dynamic_cast<const c10::Error*>(&e);
        log_warn(cat("generation continues without CUDA graphs, which is slower: ",
                     torch ? torch->what_without_backtrace() : e.what()));
        at::Tensor columns = step.columns_3T;
        steps_.clear();
        graphs_.reset();
        return compute(columns, longest, {});
      }
    }
    step.graph->replay();
  }
  return logits_;
}

at::Tensor Decoder::compute(const at::Tensor& columns_3T, int64_t longest, const at::Tensor& wanted) {
  const Weights& w = *weights_;
  const ModelConfig& c = w.config;
  auto token = columns_3T[0], position = columns_3T[2];
  HeadCounts counts{c.heads, c.kv_heads, c.head_dim};
  CacheRows cache_rows = make_cache_rows(columns_3T[1], position, longest, counts, capacity_);

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
  if (wanted.defined()) x = x.index_select(0, wanted);
  return linear_float(w.head, rms_norm(x, w.final_norm_H, c.rms_norm_eps, w.dtype));
}

void Decoder::copy_prefix(int64_t from_slot, int64_t to_slot, int64_t length) {
  auto part = [&](int64_t slot) { return cache_.select(2, slot).slice(3, 0, length); };
  part(to_slot).copy_(part(from_slot));
}

}  // namespace tritonrl
