// SPDX-License-Identifier: Apache-2.0
#include "model/files/weights.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "model/files/tensor_io.h"

namespace tritonrl {

namespace {

class Loader {
 public:
  Loader(const std::string& folder, const ModelConfig& config, const LoadOptions& options)
      : folder_(folder), files_(ModelFiles::open(folder)), config_(config), options_(options) {}

  // A copy of the file's tensor.
  at::Tensor get(const std::string& name, const std::vector<int64_t>& shape) {
    at::Tensor tensor = to_tensor(files_.require(name, shape));
    if (!tensor.is_floating_point()) throw usage_error("tensor '" + name + "' is not floating point", folder_);
    return tensor;
  }

  at::Tensor norm(const std::string& name) {
    return get(name, {config_.hidden_size}).to(at::kFloat).to(options_.device);
  }

  // Frees the parts.
  static at::Tensor joined(std::vector<at::Tensor>& parts, int64_t dim) {
    at::Tensor whole = parts.size() == 1 ? parts[0] : at::cat(parts, dim);
    parts.clear();
    return whole;
  }

  // Rows of several matrices (and biases) one below the other.
  Linear fused(const std::vector<std::pair<std::string, int64_t>>& parts, int64_t inputs, bool bias) {
    std::vector<at::Tensor> weights, biases;
    if (options_.int8) {
      std::vector<at::Tensor> scales;
      for (const auto& [name, outputs] : parts) {
        Int8Matrix part = quantize_int8(get(name + ".weight", {outputs, inputs}).to(options_.device),
                                        options_.int8_group, name + ".weight");
        weights.push_back(part.q_NK);
        scales.push_back(part.scale_GN);
        if (bias) biases.push_back(get(name + ".bias", {outputs}).to(at::kFloat));
      }
      return make_linear({joined(weights, 0), joined(scales, 1)},
                         bias ? at::cat(biases).to(options_.device) : at::Tensor());
    }
    for (const auto& [name, outputs] : parts) {
      weights.push_back(get(name + ".weight", {outputs, inputs}).to(options_.dtype));
      if (bias) biases.push_back(get(name + ".bias", {outputs}).to(at::kFloat));
    }
    return make_linear(at::cat(weights).to(options_.device), bias ? at::cat(biases).to(options_.device) : at::Tensor(),
                       false, options_.for_training);
  }

 private:
  std::string folder_;
  ModelFiles files_;
  const ModelConfig& config_;
  const LoadOptions& options_;
};

}  // namespace

std::shared_ptr<const Weights> load_weights(const std::string& folder, const LoadOptions& options) {
  auto weights = std::make_shared<Weights>();
  weights->config = ModelConfig::load(folder);
  const ModelConfig& c = weights->config;
  weights->device = options.device;
  weights->dtype = options.dtype;
  weights->vocab_limit = options.vocab_limit;
  Loader loader(folder, c, options);
  weights->embedding_VH =
      loader.get("model.embed_tokens.weight", {c.vocab_size, c.hidden_size}).to(options.dtype).to(options.device);
  for (int64_t l = 0; l < c.layers; ++l) {
    std::string prefix = cat("model.layers.", l, ".");
    LayerWeights layer;
    layer.input_norm_H = loader.norm(prefix + "input_layernorm.weight");
    layer.post_norm_H = loader.norm(prefix + "post_attention_layernorm.weight");
    layer.qkv = loader.fused({{prefix + "self_attn.q_proj", c.q_size()},
                              {prefix + "self_attn.k_proj", c.kv_size()},
                              {prefix + "self_attn.v_proj", c.kv_size()}},
                             c.hidden_size, c.qkv_bias);
    layer.o = loader.fused({{prefix + "self_attn.o_proj", c.hidden_size}}, c.q_size(), c.o_bias);
    layer.gate_up =
        loader.fused({{prefix + "mlp.gate_proj", c.intermediate_size}, {prefix + "mlp.up_proj", c.intermediate_size}},
                     c.hidden_size, false);
    layer.down = loader.fused({{prefix + "mlp.down_proj", c.hidden_size}}, c.intermediate_size, false);
    weights->layers.push_back(std::move(layer));
  }
  weights->final_norm_H = loader.norm("model.norm.weight");
  if (c.tie_embeddings) {
    weights->head = make_linear(weights->embedding_VH, {}, false, options.for_training);
  } else {
    weights->head = loader.fused({{"lm_head", c.vocab_size}}, c.hidden_size, false);
  }
  weights->rope =
      make_rope_table(c.rope_inverse_frequencies(), std::min(options.max_positions, c.max_positions), options.device);
  return weights;
}

}  // namespace tritonrl
