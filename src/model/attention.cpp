// SPDX-License-Identifier: Apache-2.0
// Attention of ops.h: packed sequences for training, single rows against a cache for generation.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "model/cpu/kernels.h"
#include "model/cuda/kernels.h"
#include "model/ops.h"

namespace tritonrl {

namespace {

// One sequence's q, k, v as [1, heads, L, D]; k and v repeated for grouped queries.
struct Heads {
  at::Tensor q, k, v;
};

Heads split_heads(const at::Tensor& qkv, int64_t begin, int64_t end, int64_t heads, int64_t kv_heads, int64_t d) {
  auto rows = qkv.slice(0, begin, end).view({end - begin, heads + 2 * kv_heads, d});
  auto part = [&](int64_t from, int64_t count) {
    return rows.slice(1, from, from + count).transpose(0, 1).unsqueeze(0);
  };
  auto repeat = [&](const at::Tensor& t) {
    return t.unsqueeze(2).expand({1, kv_heads, heads / kv_heads, end - begin, d}).reshape({1, heads, end - begin, d});
  };
  return {part(0, heads), repeat(part(heads, kv_heads)), repeat(part(heads + kv_heads, kv_heads))};
}

// softmax(q k^T / sqrt(d)) under the causal mask, float, [1, heads, L, L].
at::Tensor causal_probabilities(const Heads& s) {
  int64_t length = s.q.size(2);
  auto scores = at::matmul(s.q, s.k.transpose(-2, -1)).to(at::kFloat) / std::sqrt(static_cast<double>(s.q.size(3)));
  auto mask = at::ones({length, length}, scores.options().dtype(at::kBool)).triu(1);
  return at::softmax(scores.masked_fill(mask, -INFINITY), -1);
}

// The q, k and v parts of qkv rows, [T, heads, D] each.
struct Parts {
  at::Tensor q, k, v;
};
Parts parts_of(const at::Tensor& qkv, const HeadCounts& c) {
  auto rows = qkv.view({qkv.size(0), c.heads + 2 * c.kv_heads, c.head_dim});
  return {rows.slice(1, 0, c.heads), rows.slice(1, c.heads, c.heads + c.kv_heads),
          rows.slice(1, c.heads + c.kv_heads, c.heads + 2 * c.kv_heads)};
}

// Has this LibTorch a FlashAttention that runs on this GPU? Asked once, by running it.
bool flash_runs(at::Device device) {
  static const bool runs = [&] {
    try {
      auto x = at::zeros({1, 1, 64}, at::TensorOptions().dtype(at::kBFloat16).device(device));
      auto starts = make_sequences({0, 1}, device).starts_S1;
      at::_flash_attention_forward(x, x, x, starts, starts, 1, 1, 0.0, true, false);
      return true;
    } catch (const c10::Error& e) {
      log_warn(cat("no FlashAttention here, attention takes plain products: ", e.what_without_backtrace()));
      return false;
    }
  }();
  return runs;
}

bool use_flash(const at::Tensor& qkv, const HeadCounts& c) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && c.head_dim % 8 == 0 && c.head_dim <= 256 &&
         flash_runs(qkv.device());
}

}  // namespace

Sequences make_sequences(std::vector<int64_t> starts, at::Device device) {
  Sequences out{std::move(starts), 0, {}};
  auto on_cpu = at::empty({static_cast<int64_t>(out.starts.size())}, at::kInt);
  std::copy(out.starts.begin(), out.starts.end(), on_cpu.data_ptr<int32_t>());
  for (size_t s = 0; s + 1 < out.starts.size(); ++s) {
    out.longest = std::max(out.longest, out.starts[s + 1] - out.starts[s]);
  }
  out.starts_S1 = on_cpu.to(device);
  return out;
}

at::Tensor attention(const at::Tensor& qkv, const Sequences& sequences, const HeadCounts& counts,
                     AttentionSaved* saved) {
  auto [heads, kv_heads, d] = counts;
  const auto& starts = sequences.starts;
  if (use_flash(qkv, counts)) {
    Parts part = parts_of(qkv, counts);
    auto [o, logsumexp, random_state, unused, mask] =
        at::_flash_attention_forward(part.q, part.k, part.v, sequences.starts_S1, sequences.starts_S1,
                                     sequences.longest, sequences.longest, 0.0, true, false);
    if (saved) *saved = {{o}, {logsumexp}, random_state, unused};
    return o.reshape({qkv.size(0), heads * d});
  }
  auto out = at::empty({qkv.size(0), heads * d}, qkv.options());
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    Heads part = split_heads(qkv, starts[s], starts[s + 1], heads, kv_heads, d);
    at::Tensor result;
    if (qkv.is_cpu()) {
      auto [o, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(for_product(part.q), for_product(part.k),
                                                                            for_product(part.v), 0.0, true);
      result = o;
      if (saved) {
        saved->out.push_back(o);
        saved->logsumexp.push_back(logsumexp);
      }
    } else {
      result = at::matmul(causal_probabilities(part).to(qkv.scalar_type()), part.v);
    }
    out.slice(0, starts[s], starts[s + 1]).view({starts[s + 1] - starts[s], heads, d}).copy_(result[0].transpose(0, 1));
  }
  return out;
}

at::Tensor attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const Sequences& sequences,
                              const HeadCounts& counts, const AttentionSaved& saved) {
  auto [heads, kv_heads, d] = counts;
  const auto& starts = sequences.starts;
  auto dqkv = at::empty_like(qkv);
  if (saved.random_state.defined()) {
    Parts part = parts_of(qkv, counts), to = parts_of(dqkv, counts);
    auto [dq, dk, dv] =
        at::_flash_attention_backward(dout.view({qkv.size(0), heads, d}), part.q, part.k, part.v, saved.out[0],
                                      saved.logsumexp[0], sequences.starts_S1, sequences.starts_S1, sequences.longest,
                                      sequences.longest, 0.0, true, saved.random_state, saved.unused);
    to.q.copy_(dq);
    to.k.copy_(dk);
    to.v.copy_(dv);
    return dqkv;
  }
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    int64_t length = starts[s + 1] - starts[s];
    Heads part = split_heads(qkv, starts[s], starts[s + 1], heads, kv_heads, d);
    auto g = dout.slice(0, starts[s], starts[s + 1]).view({length, heads, d}).transpose(0, 1).unsqueeze(0);
    at::Tensor dq, dk, dv;
    if (qkv.is_cpu()) {
      std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          for_product(g), for_product(part.q), for_product(part.k), for_product(part.v), saved.out[s],
          saved.logsumexp[s], 0.0, true);
    } else {  // Probabilities are computed again rather than kept: L x L a head.
      auto p = causal_probabilities(part);
      auto low = p.to(qkv.scalar_type());
      dv = at::matmul(low.transpose(-2, -1), g);
      auto dp = at::matmul(g, part.v.transpose(-2, -1)).to(at::kFloat);
      auto ds = (p * (dp - (dp * p).sum(-1, true)) / std::sqrt(static_cast<double>(d))).to(qkv.scalar_type());
      dq = at::matmul(ds, part.k);
      dk = at::matmul(ds.transpose(-2, -1), part.q);
    }
    auto rows = dqkv.slice(0, starts[s], starts[s + 1]).view({length, heads + 2 * kv_heads, d});
    auto put = [&](int64_t from, int64_t count, const at::Tensor& t) {
      rows.slice(1, from, from + count).copy_(t[0].transpose(0, 1));
    };
    auto sum_groups = [&](const at::Tensor& t) { return t.reshape({1, kv_heads, heads / kv_heads, length, d}).sum(2); };
    put(0, heads, dq);
    put(heads, kv_heads, sum_groups(dk));
    put(heads + kv_heads, kv_heads, sum_groups(dv));
  }
  return dqkv;
}

CacheRows make_cache_rows(const at::Tensor& slot, const at::Tensor& position, int64_t longest, const HeadCounts& counts,
                          int64_t capacity) {
  CacheRows rows{slot, position, position + 1, longest, {}, {}};
  if (slot.is_cpu()) return rows;
  int64_t t = slot.size(0);
  rows.query_starts_T1 = at::arange(t + 1, slot.options());
  rows.key_starts_T1 = at::zeros({t + 1}, slot.options());
  rows.key_starts_T1.slice(0, 0, t).copy_(slot * (counts.kv_heads * capacity));
  return rows;
}

at::Tensor attend_cache(const at::Tensor& qkv, const at::Tensor& k_cache, const at::Tensor& v_cache,
                        const CacheRows& cache_rows, const HeadCounts& counts) {
  auto [heads, kv_heads, d] = counts;
  const at::Tensor &slot = cache_rows.slot_T, &length = cache_rows.length_T;
  int64_t t = qkv.size(0), capacity = k_cache.size(2), longest = cache_rows.longest;
  if (use_flash(qkv, counts)) {
    // The cache as [positions of all slots, kv_heads, D]: a row's keys begin at its slot and are as many as it sees.
    int64_t positions = (k_cache.size(0) * kv_heads - kv_heads + 1) * capacity;
    std::vector<int64_t> shape = {positions, kv_heads, d}, strides = {d, capacity * d, 1};
    auto out = std::get<0>(at::_flash_attention_forward(parts_of(qkv, counts).q, k_cache.as_strided(shape, strides),
                                                        v_cache.as_strided(shape, strides), cache_rows.query_starts_T1,
                                                        cache_rows.key_starts_T1, 1, longest, 0.0, false, false,
                                                        std::nullopt, std::nullopt, std::nullopt, length));
    return out.reshape({t, heads * d});
  }
  if (!qkv.is_cpu()) {
    auto q = qkv.slice(1, 0, heads * d).view({t, kv_heads, heads / kv_heads, d});
    auto k = k_cache.slice(2, 0, longest).index_select(0, slot), v = v_cache.slice(2, 0, longest).index_select(0, slot);
    auto scores = at::matmul(q, k.transpose(-2, -1)).to(at::kFloat) / std::sqrt(static_cast<double>(d));
    auto hidden = at::arange(longest, length.options()).unsqueeze(0) >= length.unsqueeze(1);
    scores.masked_fill_(hidden.unsqueeze(1).unsqueeze(1), -INFINITY);
    return at::matmul(at::softmax(scores, -1).to(qkv.scalar_type()), v).reshape({t, heads * d});
  }
  auto out = at::empty({t, heads * d}, qkv.options());
  auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const auto* slots = slot.data_ptr<int32_t>();
  const auto* lengths = length.data_ptr<int32_t>();
  if (qkv.scalar_type() == at::kBFloat16) {
    using cpu::half;
    cpu::kernels().attend_half(static_cast<half*>(qkv.data_ptr()), qkv.size(1), static_cast<half*>(k_cache.data_ptr()),
                               static_cast<half*>(v_cache.data_ptr()), t, heads, kv_heads, d, capacity, slots, lengths,
                               scale, static_cast<half*>(out.data_ptr()));
  } else {
    cpu::kernels().attend_float(qkv.data_ptr<float>(), qkv.size(1), k_cache.data_ptr<float>(),
                                v_cache.data_ptr<float>(), t, heads, kv_heads, d, capacity, slots, lengths, scale,
                                out.data_ptr<float>());
  }
  return out;
}

void store_cache(const at::Tensor& qkv, at::Tensor& k_cache, at::Tensor& v_cache, const CacheRows& cache_rows,
                 const HeadCounts& counts) {
  auto [heads, kv_heads, d] = counts;
  const at::Tensor &slot = cache_rows.slot_T, &position = cache_rows.position_T;
  int64_t t = qkv.size(0), capacity = k_cache.size(2);
  if (const cuda::Kernels* own = cuda::kernels(qkv.device())) {
    own->store_cache(qkv, heads, slot, position, k_cache, v_cache);
    return;
  }
  if (!qkv.is_cpu()) {
    auto rows = qkv.view({t, heads + 2 * kv_heads, d});
    auto where_slot = slot.to(at::kLong), where_position = position.to(at::kLong);
    auto put = [&](at::Tensor& cache, int64_t from) {
      cache.permute({0, 2, 1, 3}).index_put_({where_slot, where_position}, rows.slice(1, from, from + kv_heads));
    };
    put(k_cache, heads);
    put(v_cache, heads + kv_heads);
    return;
  }
  size_t element = qkv.element_size(), bytes = element * static_cast<size_t>(d);
  auto* from = static_cast<std::byte*>(qkv.data_ptr());
  const auto* slots = slot.data_ptr<int32_t>();
  const auto* positions = position.data_ptr<int32_t>();
  int64_t row_heads = heads + 2 * kv_heads;
  for (int64_t row = 0; row < t; ++row) {
    CHECK(positions[row] < capacity) << "position " << positions[row] << " of a cache of " << capacity;
    for (int64_t kv = 0; kv < kv_heads; ++kv) {
      size_t to = static_cast<size_t>((slots[row] * kv_heads + kv) * capacity + positions[row]) * bytes;
      auto source = [&](int64_t head) { return from + static_cast<size_t>(row * row_heads + head) * bytes; };
      std::memcpy(static_cast<std::byte*>(k_cache.data_ptr()) + to, source(heads + kv), bytes);
      std::memcpy(static_cast<std::byte*>(v_cache.data_ptr()) + to, source(heads + kv_heads + kv), bytes);
    }
  }
}

}  // namespace tritonrl
