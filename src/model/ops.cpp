// SPDX-License-Identifier: Apache-2.0
#include "model/ops.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "model/cpu/kernels.h"
#include "model/cuda/kernels.h"

namespace tritonrl {

using cpu::half;
using cpu::kernels;
using cpu::Store;

namespace {

half* h(const at::Tensor& t) { return static_cast<half*>(t.data_ptr()); }
float* f(const at::Tensor& t) { return t.data_ptr<float>(); }
int32_t* i(const at::Tensor& t) { return t.data_ptr<int32_t>(); }
bool is_half(const at::Tensor& t) { return t.scalar_type() == at::kBFloat16; }

at::Tensor pack(const at::Tensor& weight_NK) {
  int64_t n = weight_NK.size(0), k = weight_NK.size(1);
  auto packed = at::empty({cpu::packed_size(n, k)}, weight_NK.options());
  if (is_half(weight_NK)) {
    kernels().pack_half(h(weight_NK), n, k, h(packed));
  } else {
    kernels().pack_float(f(weight_NK), n, k, f(packed));
  }
  return packed;
}

cpu::Int8Panels panels_of(const Linear& w) {
  return {w.int8.data_ptr<int8_t>(), f(w.scale_GN), w.outputs, w.inputs, w.inputs / w.scale_GN.size(0)};
}

// On a GPU: the matrix in compute dtype.
at::Tensor full_weight(const Linear& w, at::ScalarType dtype) {
  if (!w.int8.defined()) return w.weight_NK;
  const cuda::Kernels* own = cuda::kernels(w.int8.device());
  if (!own) return dequantize({w.int8, w.scale_GN}, dtype);
  auto out = at::empty({w.outputs, w.inputs}, w.int8.options().dtype(dtype));
  own->dequantize(w.int8, w.scale_GN, out);
  return out;
}

void gemm(const at::Tensor& x, const at::Tensor& packed, int64_t n, int64_t k, const at::Tensor& bias, at::Tensor& out,
          Store store) {
  CHECK(x.size(-1) == k && x.is_contiguous() && x.scalar_type() == packed.scalar_type()) << "gemm of " << x.sizes();
  const float* bias_ptr = bias.defined() ? f(bias) : nullptr;
  if (is_half(x)) {
    kernels().gemm_half(h(x), x.size(0), k, h(packed), n, bias_ptr, out.data_ptr(), store);
  } else {
    kernels().gemm_float(f(x), x.size(0), k, f(packed), n, bias_ptr, out.data_ptr(), store);
  }
}

void gemm(const Linear& w, const at::Tensor& x, at::Tensor& out, Store store) {
  if (!w.int8.defined()) return gemm(x, w.packed, w.outputs, w.inputs, w.bias_N, out, store);
  CHECK(x.size(-1) == w.inputs && x.is_contiguous()) << "gemm of " << x.sizes();
  const float* bias = w.bias_N.defined() ? f(w.bias_N) : nullptr;
  if (is_half(x)) {
    kernels().gemm_int8_half(h(x), x.size(0), panels_of(w), bias, out.data_ptr(), store);
  } else {
    kernels().gemm_int8_float(f(x), x.size(0), panels_of(w), bias, out.data_ptr(), store);
  }
}

void add_update(const Linear& w, const at::Tensor& x, at::Tensor& y) {
  if (!w.update) return;
  at::Tensor low = linear(w.update->a_RK, x);
  int64_t from = 0;
  for (const auto& part : w.update->parts) {
    int64_t rank = part.b_NR.inputs;
    y.slice(1, part.offset, part.offset + part.b_NR.outputs)
        .add_(linear(part.b_NR, low.slice(1, from, from + rank).contiguous()));
    from += rank;
  }
}

}  // namespace

Linear make_linear(at::Tensor weight_NK, at::Tensor bias_N, bool keep_plain, bool for_training) {
  Linear out;
  out.outputs = weight_NK.size(0);
  out.inputs = weight_NK.size(1);
  out.bias_N = bias_N.defined() ? bias_N.to(at::kFloat).contiguous() : bias_N;
  weight_NK = weight_NK.contiguous();
  if (!weight_NK.is_cpu()) {
    out.weight_NK = weight_NK;
    return out;
  }
  out.packed = pack(weight_NK);
  if (for_training) out.packed_transpose = pack(weight_NK.t().contiguous());
  if (keep_plain) out.weight_NK = weight_NK;
  return out;
}

Linear make_linear(const Int8Matrix& weight, at::Tensor bias_N) {
  Linear out;
  out.outputs = weight.q_NK.size(0);
  out.inputs = weight.q_NK.size(1);
  out.bias_N = bias_N.defined() ? bias_N.to(at::kFloat).contiguous() : bias_N;
  out.int8 = weight.q_NK.contiguous();
  out.scale_GN = weight.scale_GN.contiguous();
  if (out.int8.is_cpu()) {
    auto packed = at::empty({cpu::packed_size(out.outputs, out.inputs)}, out.int8.options());
    kernels().pack_int8(out.int8.data_ptr<int8_t>(), out.outputs, out.inputs, packed.data_ptr<int8_t>());
    out.int8 = packed;
  }
  return out;
}

at::Tensor plain_weight(const Linear& w) {
  if (w.weight_NK.defined()) return w.weight_NK;
  const at::Tensor& packed = w.int8.defined() ? w.int8 : w.packed;
  if (packed.dim() == 2) return dequantize({w.int8, w.scale_GN}, at::kFloat);  // On a GPU.
  int64_t panels = cpu::panels(w.outputs), depth = w.inputs + w.inputs % 2, panel = cpu::kPanel;
  at::Tensor plain =
      packed.scalar_type() == at::kFloat
          ? packed.view({panels, depth, panel}).permute({0, 2, 1}).reshape({panels * panel, depth})
          : packed.view({panels, depth / 2, panel, 2}).permute({0, 2, 1, 3}).reshape({panels * panel, depth});
  plain = plain.slice(0, 0, w.outputs).slice(1, 0, w.inputs).contiguous();
  return w.int8.defined() ? dequantize({plain, w.scale_GN}, at::kFloat) : plain;
}

int64_t weight_bytes(const Linear& w) {
  int64_t bytes = 0;
  for (const auto* t : {&w.weight_NK, &w.packed, &w.packed_transpose, &w.int8, &w.scale_GN}) {
    if (t->defined()) bytes += static_cast<int64_t>(t->nbytes());
  }
  return bytes;
}

at::Tensor for_product(const at::Tensor& t) {
  static const bool slow = std::string_view(kernels().name) != "avx512";
  return slow && t.is_cpu() && is_half(t) ? t.to(at::kFloat) : t;
}

at::Tensor linear(const Linear& w, const at::Tensor& x) {
  at::Tensor out;
  if (x.is_cpu()) {
    out = at::empty({x.size(0), w.outputs}, x.options());
    gemm(w, x, out, Store::kSame);
  } else {
    at::Tensor full = full_weight(w, x.scalar_type());
    out = w.bias_N.defined() ? at::linear(x, full, w.bias_N.to(x.scalar_type())) : at::linear(x, full);
  }
  add_update(w, x, out);
  return out;
}

at::Tensor linear_float(const Linear& w, const at::Tensor& x) {
  if (!x.is_cpu()) {
    at::Tensor full = full_weight(w, x.scalar_type());
    at::Tensor out = is_half(x) ? at::mm(x, full.t(), at::kFloat) : at::linear(x, full);
    if (w.bias_N.defined()) out.add_(w.bias_N);
    add_update(w, x, out);
    return out;
  }
  auto out = at::empty({x.size(0), w.outputs}, x.options().dtype(at::kFloat));
  gemm(w, x, out, Store::kFloat);
  add_update(w, x, out);
  return out;
}

void linear_add_(const Linear& w, const at::Tensor& x, at::Tensor& residual) {
  if (!x.is_cpu()) {
    residual.add_(linear(w, x));
  } else {
    gemm(w, x, residual, Store::kAdd);
    add_update(w, x, residual);
  }
}

at::Tensor linear_transposed(const Linear& w, const at::Tensor& dy) {
  CHECK(!w.update) << "an update beside a matrix is for generation only";
  if (!dy.is_cpu()) return at::mm(dy, full_weight(w, dy.scalar_type()));
  auto out = at::empty({dy.size(0), w.inputs}, dy.options());
  if (!w.int8.defined()) {
    CHECK(w.packed_transpose.defined()) << "weight was not loaded for training";
    gemm(dy, w.packed_transpose, w.inputs, w.outputs, {}, out, Store::kSame);
    return out;
  }
  CHECK(dy.size(-1) == w.outputs && dy.is_contiguous()) << "gemm of " << dy.sizes();
  if (is_half(dy)) {
    kernels().gemm_int8_transposed_half(h(dy), dy.size(0), panels_of(w), h(out));
  } else {
    kernels().gemm_int8_transposed_float(f(dy), dy.size(0), panels_of(w), f(out));
  }
  return out;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, at::ScalarType dtype,
                    at::Tensor* inverse) {
  const cuda::Kernels* own = cuda::kernels(x.device());
  if (!x.is_cpu() && !own) {
    auto scale = x.square().mean(-1, true).add_(eps).rsqrt_();
    if (inverse) *inverse = scale.squeeze(-1);
    return (x * scale * weight).to(dtype);
  }
  auto y = at::empty(x.sizes(), x.options().dtype(dtype));
  if (inverse) *inverse = at::empty({x.size(0)}, x.options());
  float* inverse_ptr = inverse ? f(*inverse) : nullptr;
  if (own) {
    own->rms_norm(x, weight, static_cast<float>(eps), y, inverse);
  } else if (is_half(y)) {
    kernels().rms_norm_half(f(x), f(weight), x.size(0), x.size(1), static_cast<float>(eps), h(y), inverse_ptr);
  } else {
    kernels().rms_norm_float(f(x), f(weight), x.size(0), x.size(1), static_cast<float>(eps), f(y), inverse_ptr);
  }
  return y;
}

void rms_norm_backward_add_(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& inverse, at::Tensor& dx) {
  const cuda::Kernels* own = cuda::kernels(x.device());
  if (own) {
    own->rms_norm_backward(dy, x, weight, inverse, dx);
  } else if (!x.is_cpu()) {
    auto g = dy.to(at::kFloat) * weight, scale = inverse.unsqueeze(-1);
    auto dot = (g * x).mean(-1, true);
    dx.add_(scale * (g - x * dot * scale * scale));
  } else if (is_half(dy)) {
    kernels().rms_norm_backward_half(h(dy), f(x), f(weight), f(inverse), x.size(0), x.size(1), f(dx));
  } else {
    kernels().rms_norm_backward_float(f(dy), f(x), f(weight), f(inverse), x.size(0), x.size(1), f(dx));
  }
}

RopeTable make_rope_table(const std::vector<double>& inverse_frequencies, int64_t positions, at::Device device) {
  auto size = static_cast<int64_t>(inverse_frequencies.size());
  auto cos = at::empty({positions, size}, at::kFloat), sin = at::empty({positions, size}, at::kFloat);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t j = 0; j < size; ++j) {
      // Angles in float, as the reference implementation has them.
      float angle = static_cast<float>(p) * static_cast<float>(inverse_frequencies[static_cast<size_t>(j)]);
      f(cos)[p * size + j] = std::cos(angle);
      f(sin)[p * size + j] = std::sin(angle);
    }
  }
  return {cos.to(device), sin.to(device)};
}

void rope_(at::Tensor& x, int64_t heads, int64_t d, const at::Tensor& position, const RopeTable& table, float sign) {
  const cuda::Kernels* own = cuda::kernels(x.device());
  if (own) {
    own->rope(x, heads, d, position, table.cos, table.sin, sign);
  } else if (!x.is_cpu()) {
    auto view = x.slice(1, 0, heads * d).view({x.size(0), heads, d});
    auto cos = table.cos.index_select(0, position).unsqueeze(1),
         sin = table.sin.index_select(0, position).unsqueeze(1) * sign;
    auto first = view.slice(2, 0, d / 2).to(at::kFloat), second = view.slice(2, d / 2, d).to(at::kFloat);
    auto rotated = at::cat({first * cos - second * sin, second * cos + first * sin}, 2);
    view.copy_(rotated);
  } else if (is_half(x)) {
    kernels().rope_half(h(x), x.size(0), x.size(1), heads, d, i(position), f(table.cos), f(table.sin), sign);
  } else {
    kernels().rope_float(f(x), x.size(0), x.size(1), heads, d, i(position), f(table.cos), f(table.sin), sign);
  }
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  int64_t n = gate_up.size(1) / 2;
  const cuda::Kernels* own = cuda::kernels(gate_up.device());
  if (!gate_up.is_cpu() && !own) {
    return (at::silu(gate_up.slice(1, 0, n).to(at::kFloat)) * gate_up.slice(1, n, 2 * n)).to(gate_up.scalar_type());
  }
  auto out = at::empty({gate_up.size(0), n}, gate_up.options());
  if (own) {
    own->swiglu(gate_up, out);
  } else if (is_half(gate_up)) {
    kernels().swiglu_half(h(gate_up), gate_up.size(0), n, h(out));
  } else {
    kernels().swiglu_float(f(gate_up), gate_up.size(0), n, f(out));
  }
  return out;
}

at::Tensor swiglu_backward(const at::Tensor& dh, const at::Tensor& gate_up) {
  int64_t n = gate_up.size(1) / 2;
  const cuda::Kernels* own = cuda::kernels(dh.device());
  if (!dh.is_cpu() && !own) {
    auto gate = gate_up.slice(1, 0, n).to(at::kFloat), up = gate_up.slice(1, n, 2 * n).to(at::kFloat),
         d = dh.to(at::kFloat);
    auto sigmoid = at::sigmoid(gate);
    auto dgate = d * up * sigmoid * (1 + gate * (1 - sigmoid));
    return at::cat({dgate, d * gate * sigmoid}, 1).to(dh.scalar_type());
  }
  auto out = at::empty_like(gate_up);
  if (own) {
    own->swiglu_backward(dh, gate_up, out);
  } else if (is_half(dh)) {
    kernels().swiglu_backward_half(h(dh), h(gate_up), dh.size(0), n, h(out));
  } else {
    kernels().swiglu_backward_float(f(dh), f(gate_up), dh.size(0), n, f(out));
  }
  return out;
}

at::Tensor seeded_dropout(const at::Tensor& x, double p, uint64_t seed) {
  auto keep = static_cast<float>(1 - p);
  const cuda::Kernels* own = cuda::kernels(x.device());
  if (!x.is_cpu() && !own) {
    auto generator = at::globalContext().defaultGenerator(x.device()).clone();
    generator.set_current_seed(seed);
    return x * at::empty(x.sizes(), x.options()).bernoulli_(keep, generator).div_(keep);
  }
  CHECK(x.is_contiguous()) << "dropout of a view";
  auto out = at::empty_like(x);
  if (own) {
    own->dropout(x, seed, keep, out);
  } else if (is_half(x)) {
    kernels().dropout_half(h(x), x.numel(), seed, keep, h(out));
  } else {
    kernels().dropout_float(f(x), x.numel(), seed, keep, f(out));
  }
  return out;
}

at::Tensor cross_entropy_(at::Tensor& logits, const at::Tensor& target, const at::Tensor& weight) {
  int64_t t = logits.size(0), v = logits.size(1);
  const cuda::Kernels* own = cuda::kernels(logits.device());
  if (!logits.is_cpu() && !own) {
    auto log_probs = at::log_softmax(logits, -1, at::kFloat);
    auto index = target.to(at::kLong).unsqueeze(1);
    auto picked = log_probs.gather(1, index).squeeze(1);
    if (weight.defined()) {
      auto gradient = log_probs.exp_();
      gradient.scatter_add_(1, index, at::full({t, 1}, -1.0, gradient.options()));
      logits.copy_(gradient * weight.unsqueeze(1));
    }
    return picked;
  }
  auto out = at::empty({t}, logits.options().dtype(at::kFloat));
  const float* weights = weight.defined() ? f(weight) : nullptr;
  if (own) {
    own->cross_entropy(logits, target, weight, out);
  } else if (is_half(logits)) {
    kernels().cross_entropy_half(h(logits), t, v, i(target), weights, f(out));
  } else {
    kernels().cross_entropy_float(f(logits), t, v, i(target), weights, f(out));
  }
  return out;
}

Drawn draw_rows(const at::Tensor& logits, int64_t limit, float scale, const std::vector<double>& uniform) {
  const cuda::Kernels* own = cuda::kernels(logits.device());
  if (!own) return {};
  int64_t t = logits.size(0);
  CHECK(static_cast<int64_t>(uniform.size()) == t && logits.is_contiguous()) << t << " rows of logits";
  auto numbers = at::empty({t}, at::kDouble);
  std::copy(uniform.begin(), uniform.end(), numbers.data_ptr<double>());
  numbers = numbers.to(logits.device());
  Drawn out{at::empty({t}, logits.options().dtype(at::kInt)), at::empty({t}, logits.options())};
  own->sample(logits, limit, scale, numbers, out.token_T, out.log_prob_T);
  return out;
}

}  // namespace tritonrl
