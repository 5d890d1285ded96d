// SPDX-License-Identifier: Apache-2.0
// The operations a decoder is made of, on tensors: our own kernels on the CPU (cpu/kernels.h); on a GPU our own for
// what is row-wise (cuda/kernels.h; ATen where they are missing), cuBLAS for products and FlashAttention 2 as LibTorch
// has it (bfloat16, heads of up to 256; plain products otherwise).
//
// Legend: T rows (tokens of all sequences, packed without padding), H hidden, N outputs, K inputs, D head size.
// Activations have the compute dtype (float or bfloat16); the residual stream and norm weights are float.
// All tensors of a call live on one device and are contiguous.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "model/int8.h"

namespace tritonrl {

// A linear map. On the CPU the weight is kept packed for products with it and, when gradients are wanted, packed again
// for products with its transpose; the plain matrix is then dropped.
//
// An 8-bit matrix is kept once, for both products, and de-quantised for each: on the CPU panel by panel, on a GPU as a
// whole, into memory that goes back to the allocator after the call.
struct LowRankUpdate;
struct Linear {
  int64_t outputs = 0, inputs = 0;
  at::Tensor weight_NK;                         // Plain, compute dtype. On the CPU undefined once packed.
  at::Tensor packed;                            // CPU only.
  at::Tensor packed_transpose;                  // CPU only, for training: gradients of x need it.
  at::Tensor bias_N;                            // Float; undefined = none.
  at::Tensor int8;                              // Instead of the three above: NK on a GPU, on the CPU packed.
  at::Tensor scale_GN;                          // Float; of int8 (see Int8Matrix).
  std::shared_ptr<const LowRankUpdate> update;  // Added by each forward product; null = none.
};

// y += B A x for rows of the outputs: an adapter beside a matrix it is not merged into. For generation only.
struct LowRankUpdate {
  struct Part {
    int64_t offset = 0;  // First output.
    Linear b_NR;         // With the adapter's scale in it.
  };
  Linear a_RK;  // The parts' A, one below the other.
  std::vector<Part> parts;
};

// Takes a plain weight in compute dtype on its final device. `keep_plain` keeps the matrix beside the packed form.
Linear make_linear(at::Tensor weight_NK, at::Tensor bias_N = {}, bool keep_plain = false, bool for_training = false);
Linear make_linear(const Int8Matrix& weight, at::Tensor bias_N = {});  // Serves training too.
// The plain weight, unpacked if need be: compute dtype; of an 8-bit matrix its exact values, float. Without `update`.
at::Tensor plain_weight(const Linear& linear);
// Bytes of the matrix in all the forms that are kept, scales included.
int64_t weight_bytes(const Linear& linear);

at::Tensor linear(const Linear& w, const at::Tensor& x_TK);                          // -> TN, compute dtype.
at::Tensor linear_float(const Linear& w, const at::Tensor& x_TK);                    // -> TN, float (logits).
void linear_add_(const Linear& w, const at::Tensor& x_TK, at::Tensor& residual_TN);  // residual (float) += x W^T.
at::Tensor linear_transposed(const Linear& w,
                             const at::Tensor& dy_TN);  // dy W -> TK. REQUIRES: for_training; no update.

// What ATen's products are given: floats where its bfloat16 ones are plain loops (a CPU whose kernels here are not the
// AVX-512 ones: there they take ten times as long as in float), else the tensor as it is.
at::Tensor for_product(const at::Tensor& t);

at::Tensor rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double eps, at::ScalarType dtype,
                    at::Tensor* inverse_T = nullptr);
void rms_norm_backward_add_(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& weight_H,
                            const at::Tensor& inverse_T, at::Tensor& dx_TH);

struct RopeTable {
  at::Tensor cos, sin;  // [positions][D/2], float.
};
RopeTable make_rope_table(const std::vector<double>& inverse_frequencies, int64_t positions, at::Device device);
// Rotates the first `heads` heads of each row in place. sign = -1 is the gradient.
void rope_(at::Tensor& x_T, int64_t heads, int64_t head_dim, const at::Tensor& position_T, const RopeTable& table,
           float sign = 1);

at::Tensor swiglu(const at::Tensor& gate_up_T2I);  // silu(gate) * up.
at::Tensor swiglu_backward(const at::Tensor& dh_TI, const at::Tensor& gate_up_T2I);

// How a row of qkv is laid out: [q heads | k heads | v heads], each of head_dim.
struct HeadCounts {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
};

// The sequences of a packed batch, one behind the other.
struct Sequences {
  std::vector<int64_t> starts;  // S + 1 offsets.
  int64_t longest = 0;
  at::Tensor starts_S1;  // The same, int32, on the device.
};
Sequences make_sequences(std::vector<int64_t> starts, at::Device device);

// Causal attention inside each sequence -> [T, heads * D].
struct AttentionSaved {
  std::vector<at::Tensor> out, logsumexp;  // Per sequence; with FlashAttention on a GPU one each for the batch.
  at::Tensor random_state, unused;         // What its backward asks back.
};
at::Tensor attention(const at::Tensor& qkv, const Sequences& sequences, const HeadCounts& counts,
                     AttentionSaved* saved);
at::Tensor attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const Sequences& sequences,
                              const HeadCounts& counts, const AttentionSaved& saved);

// Single rows against a key-value cache [slots][kv_heads][capacity][D]: row t is position[t] of slot[t].
struct CacheRows {
  at::Tensor slot_T, position_T, length_T;    // int32; length = position + 1.
  int64_t longest = 0;                        // The maximum of length.
  at::Tensor query_starts_T1, key_starts_T1;  // Made by make_cache_rows for a GPU.
};
CacheRows make_cache_rows(const at::Tensor& slot_T, const at::Tensor& position_T, int64_t longest,
                          const HeadCounts& counts, int64_t capacity);
// Row t sees the first length[t] positions of its slot.
at::Tensor attend_cache(const at::Tensor& qkv, const at::Tensor& k_cache, const at::Tensor& v_cache,
                        const CacheRows& rows, const HeadCounts& counts);
// Writes the k and v parts of each row to its position.
void store_cache(const at::Tensor& qkv, at::Tensor& k_cache, at::Tensor& v_cache, const CacheRows& rows,
                 const HeadCounts& counts);

// Inverted dropout, decided by `seed` alone: the same call on a gradient is its backward.
at::Tensor seeded_dropout(const at::Tensor& x, double p, uint64_t seed);

// log softmax(logits)[target] per row; with weights, logits become the gradient of -sum_t weight[t] log_prob[t].
at::Tensor cross_entropy_(at::Tensor& logits_TV, const at::Tensor& target_T, const at::Tensor& weight_T);

// On a GPU: draws row t's next token by uniform[t] from softmax(logits * scale) over the first `limit` ids; negative =
// the most likely one. Returns {token int32, log softmax of it}, or undefined tensors where our kernels are missing.
struct Drawn {
  at::Tensor token_T, log_prob_T;
};
Drawn draw_rows(const at::Tensor& logits_TV, int64_t limit, float scale, const std::vector<double>& uniform_T);

}  // namespace tritonrl
