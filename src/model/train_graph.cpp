// SPDX-License-Identifier: Apache-2.0
#include "model/train_graph.h"

#include <algorithm>

#include "base/check.h"

namespace tritonrl {

namespace {

constexpr int64_t kHeadRows = 512;     // Rows of logits alive at a time.
constexpr double kImpossible = -1e30;  // A logit of probability 0, which times 0 is still 0.

// The adapters that share one input, in compute dtype, and what their backward needs.
struct LoraSaved {
  at::Tensor a_cat;           // [sum of ranks, K]
  std::vector<at::Tensor> b;  // [N, r] each.
  at::Tensor input;           // Dropped-out input; undefined = the layer input itself.
  uint64_t dropout_seed = 0;  // Of that dropout.
  at::Tensor low;             // input a_cat^T, [T, sum of ranks].
};

struct LayerSaved {
  at::Tensor x1, inverse1, n1, qkv, attended, x2, inverse2, n2, gate_up, h;
  AttentionSaved attention;
  LoraSaved lora_qkv, lora_o, lora_gate_up, lora_down;
};

// What the products are with: the frozen base, or all of what is trained.
const Weights& weights_of(const Weights& base, const LoraAdapter* adapter) {
  return adapter && adapter->full ? adapter->full->rounded() : base;
}

FullTensors* gradients_of(const LoraAdapter& adapter) { return adapter.full ? &adapter.full->gradients : nullptr; }

// gradient (float) += dy^T x, that of W in y = x W^T.
void add_weight_gradient(at::Tensor& gradient_NK, const at::Tensor& dy_TN, const at::Tensor& x_TK) {
  if (dy_TN.is_cpu()) {
    gradient_NK.addmm_(dy_TN.to(at::kFloat).t(), x_TK.to(at::kFloat));
  } else {
    gradient_NK.add_(at::mm(dy_TN.t(), x_TK));
  }
}

// gradient (float) += that of the weight of rms_norm.
void add_norm_gradient(at::Tensor& gradient_H, const at::Tensor& dy_TH, const at::Tensor& x_TH,
                       const at::Tensor& inverse_T) {
  gradient_H.add_((x_TH * inverse_T.unsqueeze(1)).mul_(dy_TH).sum(0));
}

class Graph {
 public:
  // For log-probabilities.
  Graph(const Weights& weights, const LoraAdapter* adapter) : w_(weights), c_(weights.config), adapter_(adapter) {}
  // For gradients.
  Graph(const Weights& weights, const LoraAdapter& adapter, Keep keep, Rng dropout)
      : w_(weights),
        c_(weights.config),
        adapter_(&adapter),
        full_(gradients_of(adapter)),
        keep_(keep == Keep::kActivations),
        inputs_only_(keep == Keep::kInputs),
        dropout_(dropout) {}

  // The residual stream after the last layer, [T, H] float.
  at::Tensor run(const PackedBatch& batch) {
    sequences_ = make_sequences(batch.starts, w_.device);
    const auto& starts = sequences_.starts;
    auto options = at::TensorOptions().dtype(at::kInt);
    auto tokens = at::empty({batch.size()}, options), position = at::empty({batch.size()}, options);
    std::copy(batch.tokens.begin(), batch.tokens.end(), tokens.data_ptr<int32_t>());
    CHECK(sequences_.longest <= w_.rope.cos.size(0)) << "sequence longer than the rope table";
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
      for (int64_t t = starts[s]; t < starts[s + 1]; ++t)
        position.data_ptr<int32_t>()[t] = static_cast<int32_t>(t - starts[s]);
    }
    position_ = position.to(w_.device);
    tokens_ = tokens.to(w_.device);
    at::Tensor x = w_.embedding_VH.index_select(0, tokens_).to(at::kFloat);
    saved_.resize(w_.layers.size());
    for (size_t l = 0; l < w_.layers.size(); ++l) {
      if (inputs_only_) saved_[l].x1 = x.clone();
      layer_forward(l, x);
    }
    return x;
  }

  // dx: gradient of the residual stream after the last layer; consumed.
  void backward(at::Tensor dx) {
    keep_ = true;
    for (size_t l = w_.layers.size(); l-- > 0;) {
      if (inputs_only_) {
        at::Tensor x = std::move(saved_[l].x1);
        layer_forward(l, x);
      }
      layer_backward(l, dx);
    }
    if (full_) full_->embedding_VH.index_add_(0, tokens_, dx);
  }

 private:
  void layer_forward(size_t l, at::Tensor& x) {
    const LayerWeights& layer = w_.layers[l];
    LayerSaved fresh;
    LayerSaved& s = keep_ ? saved_[l] : fresh;
    if (keep_) s.x1 = x.clone();
    s.n1 = rms_norm(x, layer.input_norm_H, c_.rms_norm_eps, w_.dtype, &s.inverse1);
    s.qkv = linear(layer.qkv, s.n1);
    if (adapter_) lora_forward(adapter_->layers[l].qkv, s.n1, s.qkv, s.lora_qkv, l * 4);
    rope_(s.qkv, c_.heads + c_.kv_heads, c_.head_dim, position_, w_.rope);
    s.attended = attention(s.qkv, sequences_, counts_, keep_ ? &s.attention : nullptr);
    linear_add_(layer.o, s.attended, x);
    if (adapter_) lora_forward(adapter_->layers[l].o, s.attended, x, s.lora_o, l * 4 + 1);
    if (keep_) s.x2 = x.clone();
    s.n2 = rms_norm(x, layer.post_norm_H, c_.rms_norm_eps, w_.dtype, &s.inverse2);
    s.gate_up = linear(layer.gate_up, s.n2);
    if (adapter_) lora_forward(adapter_->layers[l].gate_up, s.n2, s.gate_up, s.lora_gate_up, l * 4 + 2);
    s.h = swiglu(s.gate_up);
    linear_add_(layer.down, s.h, x);
    if (adapter_) lora_forward(adapter_->layers[l].down, s.h, x, s.lora_down, l * 4 + 3);
  }

  // y (compute dtype or float) += scale * dropout(x) A^T B^T for each adapter.
  void lora_forward(const std::vector<LoraPair>& pairs, const at::Tensor& x, at::Tensor& y, LoraSaved& s,
                    uint64_t site) {
    if (pairs.empty()) return;
    std::vector<at::Tensor> a;
    for (const auto& pair : pairs) {
      a.push_back(pair.a_RK.to(w_.dtype));
      s.b.push_back(for_product(pair.b_NR.to(w_.dtype)));
    }
    s.a_cat = for_product(at::cat(a));
    at::Tensor input = x;
    double p = adapter_->config.dropout;
    if ((keep_ || inputs_only_) && p > 0) {
      s.dropout_seed = dropout_.at(site).next_u64();
      input = s.input = seeded_dropout(x, p, s.dropout_seed);
    }
    s.low = at::linear(for_product(input), s.a_cat);
    int64_t rank = adapter_->config.rank;
    for (size_t i = 0; i < pairs.size(); ++i) {
      auto from = static_cast<int64_t>(i) * rank;
      auto low = pairs.size() == 1 ? s.low : s.low.slice(1, from, from + rank);
      auto part = y.slice(1, pairs[i].offset, pairs[i].offset + s.b[i].size(0));
      part.add_(at::linear(low, s.b[i]), adapter_->scale());
    }
    if (!keep_) s = {};
  }

  // What all of a layer's weights get in full fine-tuning.
  void full_backward(at::Tensor& weight_NK, at::Tensor* bias_N, const at::Tensor& dy, const at::Tensor& x) {
    add_weight_gradient(weight_NK, dy, x);
    if (bias_N && bias_N->defined()) bias_N->add_(dy.to(at::kFloat).sum(0));
  }

  // Gradient of y = W x + adapters with respect to x (compute dtype; undefined when not wanted); adds the adapters'
  // own.
  at::Tensor linear_backward(const Linear& linear, std::vector<LoraPair>& pairs, const at::Tensor& dy,
                             const at::Tensor& x, LoraSaved& s, bool want_dx) {
    at::Tensor dx = want_dx ? linear_transposed(linear, dy) : at::Tensor();
    if (pairs.empty()) return dx;
    const at::Tensor& input = s.input.defined() ? s.input : x;
    int64_t rank = adapter_->config.rank;
    auto dlow = at::empty_like(s.low);
    for (size_t i = 0; i < pairs.size(); ++i) {
      auto from = static_cast<int64_t>(i) * rank;
      auto part = for_product(pairs.size() == 1 ? dy : dy.slice(1, pairs[i].offset, pairs[i].offset + s.b[i].size(0)));
      auto low = s.low.slice(1, from, from + rank);
      dlow.slice(1, from, from + rank).copy_(at::mm(part, s.b[i]));
      pairs[i].grad_b.add_(at::mm(part.t(), low), adapter_->scale());
    }
    dlow.mul_(adapter_->scale());
    auto da = at::mm(dlow.t(), for_product(input));
    for (size_t i = 0; i < pairs.size(); ++i) {
      auto from = static_cast<int64_t>(i) * rank;
      pairs[i].grad_a.add_(da.slice(0, from, from + rank));
    }
    if (want_dx) {
      auto through = at::mm(dlow, s.a_cat);
      dx.add_(s.input.defined() ? seeded_dropout(through, adapter_->config.dropout, s.dropout_seed) : through);
    }
    return dx;
  }

  void layer_backward(size_t l, at::Tensor& dx) {
    const LayerWeights& layer = w_.layers[l];
    LayerSaved& s = saved_[l];
    auto& lora = const_cast<LoraAdapter*>(adapter_)->layers[l];
    FullTensors::Layer* full = full_ ? &full_->layers[l] : nullptr;
    at::Tensor g = dx.to(w_.dtype);
    if (full) full_backward(full->down_NK, nullptr, g, s.h);
    at::Tensor dh = linear_backward(layer.down, lora.down, g, s.h, s.lora_down, true);
    at::Tensor dgate_up = swiglu_backward(dh, s.gate_up);
    if (full) full_backward(full->gate_up_NK, nullptr, dgate_up, s.n2);
    at::Tensor dn = linear_backward(layer.gate_up, lora.gate_up, dgate_up, s.n2, s.lora_gate_up, true);
    if (full) add_norm_gradient(full->post_norm_H, dn, s.x2, s.inverse2);
    rms_norm_backward_add_(dn, s.x2, layer.post_norm_H, s.inverse2, dx);
    g = dx.to(w_.dtype);
    if (full) full_backward(full->o_NK, &full->o_bias_N, g, s.attended);
    at::Tensor dattended = linear_backward(layer.o, lora.o, g, s.attended, s.lora_o, true);
    at::Tensor dqkv = attention_backward(dattended, s.qkv, sequences_, counts_, s.attention);
    rope_(dqkv, c_.heads + c_.kv_heads, c_.head_dim, position_, w_.rope, -1);
    if (full) full_backward(full->qkv_NK, &full->qkv_bias_N, dqkv, s.n1);
    bool below = l > 0 || full;  // For an adapter embeddings are frozen.
    dn = linear_backward(layer.qkv, lora.qkv, dqkv, s.n1, s.lora_qkv, below);
    if (full) add_norm_gradient(full->input_norm_H, dn, s.x1, s.inverse1);
    if (below) rms_norm_backward_add_(dn, s.x1, layer.input_norm_H, s.inverse1, dx);
    s = {};  // Frees the layer's activations.
  }

  const Weights& w_;
  const ModelConfig& c_;
  const LoraAdapter* adapter_;
  FullTensors* full_ = nullptr;  // Gradients of all weights; null = the adapter's alone.
  bool keep_ = false;            // Does a forward pass save what its backward needs?
  bool inputs_only_ = false;     // Not at first.
  Rng dropout_{0};
  HeadCounts counts_{c_.heads, c_.kv_heads, c_.head_dim};
  Sequences sequences_;
  at::Tensor position_, tokens_;
  std::vector<LayerSaved> saved_;
};

// The rows that carry loss, a chunk at a time.
class Head {
 public:
  // exact: logits in float, as the sampler has them, instead of compute dtype. `full` = gradients of head and final
  // norm, where they are wanted.
  Head(const Weights& w, const at::Tensor& x, const PackedBatch& batch, double temperature, bool exact,
       FullTensors* full)
      : w_(w), x_(x), batch_(batch), temperature_(temperature), exact_(exact), full_(full) {}

  // Calls fn(first row, rows) for each chunk, whose logits / temperature are then in `logits`.
  template <class Fn>
  void each_chunk(const Fn& fn) {
    auto rows = static_cast<int64_t>(batch_.loss_rows.size());
    for (int64_t begin = 0; begin < rows; begin += kHeadRows) {
      int64_t count = std::min(kHeadRows, rows - begin);
      auto index = at::empty({count}, at::kLong), next = at::empty({count}, at::kInt);
      for (int64_t r = 0; r < count; ++r) {
        int64_t row = batch_.loss_rows[static_cast<size_t>(begin + r)];
        index.data_ptr<int64_t>()[r] = row;
        next.data_ptr<int32_t>()[r] = batch_.tokens[static_cast<size_t>(row + 1)];
      }
      index_ = index.to(w_.device);
      target = next.to(w_.device);
      picked_ = x_.index_select(0, index_);
      normed_ = rms_norm(picked_, w_.final_norm_H, w_.config.rms_norm_eps, w_.dtype, &inverse_);
      logits = exact_ ? linear_float(w_.head, normed_) : linear(w_.head, normed_);
      if (temperature_ != 1) logits.mul_(1 / temperature_);
      if (w_.vocab_limit > 0) logits.slice(1, w_.vocab_limit).fill_(kImpossible);
      fn(begin, count);
    }
  }

  // `logits` hold the gradient of logits / temperature: adds it to the residual stream's.
  void add_to(at::Tensor& dx) {
    if (temperature_ != 1) logits.mul_(1 / temperature_);
    auto dlogits = logits.to(w_.dtype);
    auto dnormed = linear_transposed(w_.head, dlogits);
    if (full_) {
      add_weight_gradient(full_->head_VH.defined() ? full_->head_VH : full_->embedding_VH, dlogits, normed_);
      add_norm_gradient(full_->final_norm_H, dnormed, picked_, inverse_);
    }
    auto dpicked = at::zeros_like(picked_);
    rms_norm_backward_add_(dnormed, picked_, w_.final_norm_H, inverse_, dpicked);
    dx.index_add_(0, index_, dpicked);
  }

  // values[begin, begin + count) on the weights' device.
  at::Tensor part(const std::vector<float>& values, int64_t begin, int64_t count) const {
    auto out = at::empty({count}, at::kFloat);
    std::copy_n(values.begin() + begin, count, out.data_ptr<float>());
    return out.to(w_.device);
  }

  at::Tensor logits, target;

 private:
  const Weights& w_;
  const at::Tensor& x_;
  const PackedBatch& batch_;
  double temperature_;
  bool exact_;
  FullTensors* full_;
  at::Tensor index_, picked_, normed_, inverse_;
};

void append(std::vector<float>& to, const at::Tensor& values) {
  auto on_cpu = values.to(at::kCPU, at::kFloat).contiguous();
  to.insert(to.end(), on_cpu.data_ptr<float>(), on_cpu.data_ptr<float>() + on_cpu.numel());
}

// Loss over the rows that carry it; with dx, fills it with the gradient of the residual stream.
LossResult head_loss(const Weights& w, const at::Tensor& x, const PackedBatch& batch, double temperature,
                     const std::vector<float>& weights, bool exact, at::Tensor* dx, FullTensors* full = nullptr) {
  LossResult result;
  CHECK(weights.size() == batch.loss_rows.size()) << "one weight a loss row";
  if (dx) *dx = at::zeros_like(x);
  Head head(w, x, batch, temperature, exact, full);
  head.each_chunk([&](int64_t begin, int64_t count) {
    append(result.log_probs,
           cross_entropy_(head.logits, head.target, dx ? head.part(weights, begin, count) : at::Tensor()));
    if (dx) head.add_to(*dx);
  });
  for (size_t r = 0; r < weights.size(); ++r) result.loss -= static_cast<double>(weights[r]) * result.log_probs[r];
  return result;
}

LossResult head_objective(const Weights& w, const at::Tensor& x, const PackedBatch& batch, const Objective& objective,
                          at::Tensor* dx, FullTensors* full) {
  LossResult result;
  Head head(w, x, batch, objective.temperature, true, full);
  head.each_chunk([&](int64_t, int64_t) {
    auto log_p = at::log_softmax(head.logits, -1, at::kFloat);
    append(result.log_probs, log_p.gather(1, head.target.to(at::kLong).unsqueeze(1)).squeeze(1));
    append(result.entropies, log_p.exp().mul_(log_p).sum(-1).neg_());
  });
  RowGradients gradients;
  double loss = objective.loss(result, &gradients);
  CHECK(gradients.weights.size() == result.log_probs.size()) << "one weight a loss row";
  if (gradients.entropies.empty()) {
    head_loss(w, x, batch, objective.temperature, gradients.weights, true, dx, full);
  } else {
    CHECK(gradients.entropies.size() == result.log_probs.size()) << "one entropy weight a loss row";
    *dx = at::zeros_like(x);
    head.each_chunk([&](int64_t begin, int64_t count) {
      auto log_p = at::log_softmax(head.logits, -1, at::kFloat), p = log_p.exp();
      auto entropy = head.part(result.entropies, begin, count).unsqueeze(1);
      auto weight = head.part(gradients.weights, begin, count).unsqueeze(1);
      auto slope = head.part(gradients.entropies, begin, count).unsqueeze(1);
      // d entropy / d z_j = -p_j (log p_j + entropy).
      auto gradient = log_p.add_(entropy).mul_(slope).neg_().add_(weight).mul_(p);
      gradient.scatter_add_(1, head.target.to(at::kLong).unsqueeze(1), weight.neg());
      head.logits = gradient;
      head.add_to(*dx);
    });
  }
  result.loss = loss;
  return result;
}

}  // namespace

void PackedBatch::append(const std::vector<int32_t>& sequence, const std::vector<float>& weights) {
  CHECK(sequence.size() == weights.size() && !sequence.empty())
      << sequence.size() << " tokens, " << weights.size() << " weights";
  int64_t start = size();
  tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  starts.push_back(size());
  for (size_t t = 1; t < sequence.size(); ++t) {
    if (weights[t] == 0) continue;
    loss_rows.push_back(start + static_cast<int64_t>(t) - 1);
    loss_weights.push_back(weights[t]);
  }
}

LossResult forward_backward(const Weights& weights, LoraAdapter& adapter, const PackedBatch& batch, Rng dropout,
                            Keep keep) {
  at::InferenceMode no_autograd;
  const Weights& w = weights_of(weights, &adapter);
  Graph graph(w, adapter, keep, dropout);
  at::Tensor x = graph.run(batch), dx;
  LossResult result = head_loss(w, x, batch, 1, batch.loss_weights, false, &dx, gradients_of(adapter));
  graph.backward(dx);
  return result;
}

LossResult forward_backward(const Weights& weights, LoraAdapter& adapter, const PackedBatch& batch, Rng dropout,
                            const Objective& objective, Keep keep) {
  at::InferenceMode no_autograd;
  const Weights& w = weights_of(weights, &adapter);
  Graph graph(w, adapter, keep, dropout);
  at::Tensor x = graph.run(batch), dx;
  LossResult result = head_objective(w, x, batch, objective, &dx, gradients_of(adapter));
  graph.backward(dx);
  return result;
}

LossResult forward(const Weights& weights, const LoraAdapter* adapter, const PackedBatch& batch, double temperature) {
  at::InferenceMode no_autograd;
  const Weights& w = weights_of(weights, adapter);
  at::Tensor x = Graph(w, adapter).run(batch);
  return head_loss(w, x, batch, temperature, batch.loss_weights, true, nullptr);
}

at::Tensor forward_logits(const Weights& weights, const LoraAdapter* adapter, const std::vector<int32_t>& tokens) {
  at::InferenceMode no_autograd;
  PackedBatch batch;
  batch.append(tokens, std::vector<float>(tokens.size(), 0));
  const Weights& w = weights_of(weights, adapter);
  at::Tensor x = Graph(w, adapter).run(batch);
  return linear_float(w.head, rms_norm(x, w.final_norm_H, w.config.rms_norm_eps, w.dtype));
}

}  // namespace tritonrl
