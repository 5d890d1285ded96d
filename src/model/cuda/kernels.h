// SPDX-License-Identifier: Apache-2.0
// CUDA kernels of the transformer: the element-wise and row-wise passes that ATen would make several launches of, and
// the draw of the next token, so that logits never leave the GPU. Products and attention stay with the libraries.
//
// Their source (kernels.cu) is in the program, which compiles it for the GPU at hand (base/process/nvrtc.h) and links
// nothing of CUDA. Where that cannot be done, and with TRITONRL_CUDA_KERNELS=0 in the environment, there are none, and
// ops.h takes ATen. Semantics are those of cpu/kernels.h.
//
// Every function launches on the current stream of its tensors' device, returns at once, may be recorded in a CUDA
// graph, and throws Error (environment) when the launch is refused. Tensors are contiguous, of one device, and of
// float32 or bfloat16 where no type is named. Legend: T rows (tokens), H hidden, N outputs, K inputs, D head size, V
// vocabulary. Thread rule: any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/process/nvrtc.h"

namespace tritonrl::cuda {

// What kernels.cu is compiled with, and the kernels that must be in it.
const CudaProgram& program();

class Kernels {
 public:
  // Throws Error (environment) where they cannot be compiled or loaded.
  explicit Kernels(const at::Device& device);

  // y = x * inverse * weight, where inverse = 1 / sqrt(mean(x^2) + eps); x, weight, inverse_T float32.
  void rms_norm(const at::Tensor& x_TH, const at::Tensor& weight, float eps, at::Tensor& y_TH,
                at::Tensor* inverse_T) const;
  // Adds to dx (float32).
  void rms_norm_backward(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& weight,
                         const at::Tensor& inverse_T, at::Tensor& dx_TH) const;
  // Rotates the first `heads` heads of each row of x.
  void rope(at::Tensor& x, int64_t heads, int64_t d, const at::Tensor& position_T, const at::Tensor& cos,
            const at::Tensor& sin, float sign) const;
  void swiglu(const at::Tensor& gate_up, at::Tensor& h) const;
  void swiglu_backward(const at::Tensor& dh, const at::Tensor& gate_up, at::Tensor& dgate_up) const;
  // The masks are those of the CPU's dropout.
  void dropout(const at::Tensor& x, uint64_t seed, float keep, at::Tensor& y) const;
  // With a weight_T (float32), logits become their own gradient.
  void cross_entropy(at::Tensor& logits_TV, const at::Tensor& target_T, const at::Tensor& weight_T,
                     at::Tensor& log_prob_T) const;
  // The k and v heads of each row of qkv -> position[t] of slot[t]; caches [slots][kv_heads][capacity][D].
  void store_cache(const at::Tensor& qkv, int64_t heads, const at::Tensor& slot_T, const at::Tensor& position_T,
                   at::Tensor& k_cache, at::Tensor& v_cache) const;
  // out_NK = q_NK (int8) * scale[k / group][n], multiplied in float and rounded once.
  void dequantize(const at::Tensor& q_NK, const at::Tensor& scale_GN, at::Tensor& out_NK) const;
  // Per row of logits_TV (float32): the smallest id whose cumulative probability exceeds uniform[t] (float64 in [0, 1);
  // negative = the most likely id), over the first `limit` ids of softmax(logits * scale), and log softmax of it. Sums
  // are float64.
  void sample(const at::Tensor& logits_TV, int64_t limit, float scale, const at::Tensor& uniform_T, at::Tensor& token_T,
              at::Tensor& log_prob_T) const;

 private:
  struct Variants {  // One kernel by compute dtype and by how many neighbours a thread takes at once (1, 8).
    void* function[2][2] = {};
  };
  template <class... A>
  void launch(const Variants& kernel, const at::Tensor& typed, bool packed, int64_t blocks, int threads,
              const A&... arguments) const;

  Variants rms_norm_, rms_norm_backward_, rope_, swiglu_, swiglu_backward_, dropout_, cross_entropy_, store_cache_,
      dequantize_, sample_;
};

// Null on the CPU, and with a warning where there are none. Call after open_device (device.h).
const Kernels* kernels(const at::Device& device);

}  // namespace tritonrl::cuda
