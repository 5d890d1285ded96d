// SPDX-License-Identifier: Apache-2.0
// The frozen weights of a decoder, fused and laid out for our kernels.
//
// q, k, v are one matrix and so are gate and up: fewer, larger products. One set of weights may be shared by any number
// of graphs and decoders (shared_ptr, read-only).
//
// The frozen base of LoRA may be 8-bit integers (as QLoRA has it with 4: Dettmers et al., 2023): q, k, v, o, gate, up
// and down are then quantised as they are read (model/int8.h), one matrix at a time, and no other copy of them is made;
// embedding, norms, biases and head stay as they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "model/ops.h"

namespace tritonrl {

struct LayerWeights {
  at::Tensor input_norm_H, post_norm_H;  // Float.
  Linear qkv, o, gate_up, down;
};

struct Weights {
  ModelConfig config;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;  // Compute dtype.
  at::Tensor embedding_VH;            // Compute dtype.
  std::vector<LayerWeights> layers;
  at::Tensor final_norm_H;
  Linear head;
  RopeTable rope;
  int64_t vocab_limit = 0;  // Tokens from here on are padding, which no distribution gives mass; 0 = there are none.
};

struct LoadOptions {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kBFloat16;
  bool int8 = false;             // 8-bit matrices.
  int64_t int8_group = 0;        // Inputs that share a scale; 0 = all of an output's.
  bool for_training = true;      // Also keep what gradients need.
  int64_t vocab_limit = 0;       // As in Weights: how many tokens the tokenizer knows.
  int64_t max_positions = 8192;  // Rope table rows; clipped to the model's own limit.
};

// Reads a Hugging Face folder. Throws Error (usage) that names file and tensor for anything missing or misshapen, and
// for a group that does not fit (see check_int8_group).
std::shared_ptr<const Weights> load_weights(const std::string& folder, const LoadOptions& options);

}  // namespace tritonrl
