// SPDX-License-Identifier: Apache-2.0
// The architecture of a decoder, as read from a Hugging Face config.json. Llama and Qwen2; anything else is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

struct ModelConfig {
  std::string model_type;  // "llama" or "qwen2".
  int64_t vocab_size = 0;  // Rows of the embedding; may exceed the tokenizer's (padding rows).
  int64_t hidden_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // Grouped-query attention when smaller than heads.
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000;
  int64_t max_positions = 0;
  bool tie_embeddings = false;  // The head is the embedding.
  bool qkv_bias = false;
  bool o_bias = false;
  std::vector<int64_t> eos_ids;

  // Llama 3 rope scaling (rope_type "llama3"); factor 1 = none. "linear" scaling sets only factor. Others are refused.
  std::string rope_type = "default";
  double rope_factor = 1;
  double rope_low_freq_factor = 1, rope_high_freq_factor = 4;
  int64_t rope_original_positions = 8192;

  int64_t q_size() const { return heads * head_dim; }
  int64_t kv_size() const { return kv_heads * head_dim; }

  // Inverse frequency of each of the head_dim / 2 rotation pairs, after scaling.
  std::vector<double> rope_inverse_frequencies() const;

  // Reads folder/config.json (and generation_config.json for end tokens). Throws Error (usage).
  static ModelConfig load(const std::string& folder);
};

}  // namespace tritonrl
