// SPDX-License-Identifier: Apache-2.0
// CPU kernels of the transformer: what ATen has no fused or no batch-invariant form of.
//
// Every kernel computes a row of its output from that row's inputs alone, in an order that does not depend on how many
// other rows there are. Hence one seed gives the same rollout whatever else is in the batch. kernels_impl.inc is
// compiled once per instruction set; kernels() picks the best one this processor has. Work is spread with
// at::parallel_for.
//
// Legend: T rows (tokens), H hidden, N outputs, K inputs, D head size, V vocabulary. Matrices are row-major and dense.
// `half` is bfloat16 as raw bits.
#pragma once

#include <cstdint>

namespace tritonrl::cpu {

using half = uint16_t;

// Panels of 64 outputs; inside a panel pairs of inputs lie together: [N/64][K/2][64][2] for half, [N/64][K][64] for
// float.
constexpr int64_t kPanel = 64;
inline int64_t panels(int64_t n) { return (n + kPanel - 1) / kPanel; }
inline int64_t packed_size(int64_t n, int64_t k) { return panels(n) * kPanel * (k + k % 2); }

// What a GEMM does with a row of results.
enum class Store {
  kSame,   // Rounded to the input type.
  kFloat,  // Kept in float.
  kAdd,    // Added to float outputs (the residual stream).
};

// A matrix of 8-bit integers: W[n][k] = q[n][k] * scale[k / group][n]. q is packed like half, 0 beyond N and K.
struct Int8Panels {
  const int8_t* q;      // [N/64][K/2][64][2].
  const float* scale;   // [K/group][N].
  int64_t n, k, group;  // group divides k; it is even unless it is k.
};

struct Kernels {
  const char* name;

  // weight_NK -> packed (packed_size elements).
  void (*pack_half)(const half* weight, int64_t n, int64_t k, half* packed);
  void (*pack_float)(const float* weight, int64_t n, int64_t k, float* packed);

  // out_TN = x_TK weight_NK^T + bias_N (bias may be null). Accumulates in float, in order of K.
  void (*gemm_half)(const half* x, int64_t t, int64_t k, const half* packed, int64_t n, const float* bias, void* out,
                    Store);
  void (*gemm_float)(const float* x, int64_t t, int64_t k, const float* packed, int64_t n, const float* bias, void* out,
                     Store);

  // weight_NK -> packed (packed_size elements).
  void (*pack_int8)(const int8_t* weight, int64_t n, int64_t k, int8_t* packed);
  // The GEMM with a matrix of 8-bit integers. Each thread de-quantises one panel at a time, rounded to the type of x,
  // so results are those of the plain GEMM with the de-quantised matrix, bit for bit.
  void (*gemm_int8_half)(const half* x, int64_t t, const Int8Panels& weight, const float* bias, void* out, Store);
  void (*gemm_int8_float)(const float* x, int64_t t, const Int8Panels& weight, const float* bias, void* out, Store);
  // out_TK = dy_TN weight_NK, from the same packed matrix.
  void (*gemm_int8_transposed_half)(const half* dy, int64_t t, const Int8Panels& weight, half* out);
  void (*gemm_int8_transposed_float)(const float* dy, int64_t t, const Int8Panels& weight, float* out);

  // y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019). inverse_T may be null.
  void (*rms_norm_half)(const float* x, const float* weight, int64_t t, int64_t h, float eps, half* y, float* inverse);
  void (*rms_norm_float)(const float* x, const float* weight, int64_t t, int64_t h, float eps, float* y,
                         float* inverse);
  // dx += gradient of rms_norm.
  void (*rms_norm_backward_half)(const half* dy, const float* x, const float* weight, const float* inverse, int64_t t,
                                 int64_t h, float* dx);
  void (*rms_norm_backward_float)(const float* dy, const float* x, const float* weight, const float* inverse, int64_t t,
                                  int64_t h, float* dx);

  // Rotates the first `heads` heads of every row of x_T(row_size) in place; pairs are (i, i + D/2), as in Hugging
  // Face's Llama. cos/sin are tables [positions][D/2]; sign -1 gives the gradient.
  void (*rope_half)(half* x, int64_t t, int64_t row_size, int64_t heads, int64_t d, const int32_t* position,
                    const float* cos, const float* sin, float sign);
  void (*rope_float)(float* x, int64_t t, int64_t row_size, int64_t heads, int64_t d, const int32_t* position,
                     const float* cos, const float* sin, float sign);

  // h_TI = silu(gate) * up, gate_up_T(2I) = [gate | up].
  void (*swiglu_half)(const half* gate_up, int64_t t, int64_t i, half* h);
  void (*swiglu_float)(const float* gate_up, int64_t t, int64_t i, float* h);
  void (*swiglu_backward_half)(const half* dh, const half* gate_up, int64_t t, int64_t i, half* dgate_up);
  void (*swiglu_backward_float)(const float* dh, const float* gate_up, int64_t t, int64_t i, float* dgate_up);

  // out_T(heads*D): row t attends to the first length[t] positions of cache slot[t].
  // Caches are [slots][kv_heads][capacity][D]; q rows are q_stride elements apart.
  void (*attend_half)(const half* q, int64_t q_stride, const half* k_cache, const half* v_cache, int64_t t,
                      int64_t heads, int64_t kv_heads, int64_t d, int64_t capacity, const int32_t* slot,
                      const int32_t* length, float scale, half* out);
  void (*attend_float)(const float* q, int64_t q_stride, const float* k_cache, const float* v_cache, int64_t t,
                       int64_t heads, int64_t kv_heads, int64_t d, int64_t capacity, const int32_t* slot,
                       const int32_t* length, float scale, float* out);

  // Row-wise softmax cross-entropy. Per row: log_prob[t] = log softmax(logits)[target[t]]; when weight is not null,
  // logits are overwritten by the gradient of -sum_t weight[t] * log_prob[t].
  void (*cross_entropy_half)(half* logits, int64_t t, int64_t v, const int32_t* target, const float* weight,
                             float* log_prob);
  void (*cross_entropy_float)(float* logits, int64_t t, int64_t v, const int32_t* target, const float* weight,
                              float* log_prob);

  // y = x * mask / keep, element i being kept with probability keep (to 1 in 65,536), by a hash of (seed, i): calling
  // it again on a gradient with the same seed is dropout's backward. x may be y.
  void (*dropout_half)(const half* x, int64_t n, uint64_t seed, float keep, half* y);
  void (*dropout_float)(const float* x, int64_t n, uint64_t seed, float keep, float* y);

  // Of one row: maximum of x * scale, and sum of exp(x * scale - maximum).
  void (*softmax_stats)(const float* x, int64_t v, float scale, float* maximum, float* sum);
};

const Kernels& kernels();

}  // namespace tritonrl::cpu
