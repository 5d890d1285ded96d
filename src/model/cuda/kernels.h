// SPDX-License-Identifier: Apache-2.0
// CUDA kernels of the transformer: the element-wise and row-wise passes that ATen would make several launches of, and
// the draw of the next token, so that logits never leave the GPU. Products and attention stay with the libraries.
//
// They are a module of its own, opened when a GPU is first used: the program starts on machines without CUDA, and is
// built without nvcc (then kernels() is null and ops.h takes ATen). The environment's TRITONRL_CUDA_KERNELS=0 has the
// same effect. Semantics are those of cpu/kernels.h; `half` is bfloat16 as raw bits.
//
// Every function launches on `stream` (a cudaStream_t) of the current device and returns at once: 0, or a cudaError_t.
// Legend: T rows (tokens), H hidden, N outputs, K inputs, D head size, V vocabulary.
#pragma once

#include <cstdint>

namespace tritonrl::cuda {

using half = uint16_t;

struct Kernels {
  const char* (*error_name)(int error);

  int (*rms_norm_half)(void* stream, const float* x, const float* weight, int64_t t, int64_t h, float eps, half* y,
                       float* inverse);
  int (*rms_norm_float)(void* stream, const float* x, const float* weight, int64_t t, int64_t h, float eps, float* y,
                        float* inverse);
  int (*rms_norm_backward_half)(void* stream, const half* dy, const float* x, const float* weight, const float* inverse,
                                int64_t t, int64_t h, float* dx);
  int (*rms_norm_backward_float)(void* stream, const float* dy, const float* x, const float* weight,
                                 const float* inverse, int64_t t, int64_t h, float* dx);

  int (*rope_half)(void* stream, half* x, int64_t t, int64_t row_size, int64_t heads, int64_t d,
                   const int32_t* position, const float* cos, const float* sin, float sign);
  int (*rope_float)(void* stream, float* x, int64_t t, int64_t row_size, int64_t heads, int64_t d,
                    const int32_t* position, const float* cos, const float* sin, float sign);

  int (*swiglu_half)(void* stream, const half* gate_up, int64_t t, int64_t i, half* h);
  int (*swiglu_float)(void* stream, const float* gate_up, int64_t t, int64_t i, float* h);
  int (*swiglu_backward_half)(void* stream, const half* dh, const half* gate_up, int64_t t, int64_t i, half* dgate_up);
  int (*swiglu_backward_float)(void* stream, const float* dh, const float* gate_up, int64_t t, int64_t i,
                               float* dgate_up);

  // The masks are those of the CPU's dropout.
  int (*dropout_half)(void* stream, const half* x, int64_t n, uint64_t seed, float keep, half* y);
  int (*dropout_float)(void* stream, const float* x, int64_t n, uint64_t seed, float keep, float* y);

  int (*cross_entropy_half)(void* stream, half* logits, int64_t t, int64_t v, const int32_t* target,
                            const float* weight, float* log_prob);
  int (*cross_entropy_float)(void* stream, float* logits, int64_t t, int64_t v, const int32_t* target,
                             const float* weight, float* log_prob);

  // The k and v heads of each row of qkv_T(row_size) -> position[t] of slot[t]; caches [slots][kv_heads][capacity][D].
  int (*store_cache_half)(void* stream, const half* qkv, int64_t t, int64_t heads, int64_t kv_heads, int64_t d,
                          int64_t capacity, const int32_t* slot, const int32_t* position, half* k_cache, half* v_cache);
  int (*store_cache_float)(void* stream, const float* qkv, int64_t t, int64_t heads, int64_t kv_heads, int64_t d,
                           int64_t capacity, const int32_t* slot, const int32_t* position, float* k_cache,
                           float* v_cache);

  // out_NK = q_NK * scale[k / group][n], multiplied in float and rounded once.
  int (*dequantize_half)(void* stream, const int8_t* q, const float* scale, int64_t n, int64_t k, int64_t group,
                         half* out);
  int (*dequantize_float)(void* stream, const int8_t* q, const float* scale, int64_t n, int64_t k, int64_t group,
                          float* out);

  // Per row of logits_TV: the smallest id whose cumulative probability exceeds uniform[t] (in [0, 1); negative = the
  // most likely id), over the first `limit` ids of softmax(logits * scale), and log softmax of it. Sums are double.
  int (*sample)(void* stream, const float* logits, int64_t t, int64_t v, int64_t limit, float scale,
                const double* uniform, int32_t* token, float* log_prob);
};

// Null where the module was not built, cannot be opened or is switched off. Call after open_device (device.h).
const Kernels* kernels();

}  // namespace tritonrl::cuda
