// SPDX-License-Identifier: Apache-2.0
#include "model/files/full_weights.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"
#include "model/files/tensor_io.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

Weights without_matrices(const Weights& base) {
  Weights shell;
  shell.config = base.config;
  shell.device = base.device;
  shell.dtype = base.dtype;
  shell.vocab_limit = base.vocab_limit;
  shell.rope = base.rope;
  return shell;
}

at::Tensor own_float(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous() : tensor;
}

}  // namespace

void FullTensors::for_each(const std::function<void(const std::string&, at::Tensor&)>& fn) {
  auto visit = [&](const std::string& name, at::Tensor& tensor) {
    if (tensor.defined()) fn(name, tensor);
  };
  visit("embedding", embedding_VH);
  for (size_t l = 0; l < layers.size(); ++l) {
    Layer& layer = layers[l];
    std::string prefix = cat("layers.", l, ".");
    visit(prefix + "input_norm", layer.input_norm_H);
    visit(prefix + "qkv", layer.qkv_NK);
    visit(prefix + "qkv_bias", layer.qkv_bias_N);
    visit(prefix + "o", layer.o_NK);
    visit(prefix + "o_bias", layer.o_bias_N);
    visit(prefix + "post_norm", layer.post_norm_H);
    visit(prefix + "gate_up", layer.gate_up_NK);
    visit(prefix + "down", layer.down_NK);
  }
  visit("final_norm", final_norm_H);
  visit("head", head_VH);
}

FullWeights::FullWeights(const Weights& base) : shell_(without_matrices(base)) { take(base); }

FullWeights::FullWeights(const std::string& folder, const Weights& base) : shell_(without_matrices(base)) {
  LoadOptions options;
  options.device = base.device;
  options.dtype = at::kFloat;
  options.for_training = false;
  auto weights = load_weights(folder, options);
  const ModelConfig &a = weights->config, &b = base.config;
  if (a.hidden_size != b.hidden_size || a.layers != b.layers || a.vocab_size != b.vocab_size ||
      a.intermediate_size != b.intermediate_size || a.q_size() != b.q_size() || a.kv_size() != b.kv_size() ||
      a.tie_embeddings != b.tie_embeddings) {
    throw usage_error("is a model of another shape than policy.model", folder);
  }
  take(*weights);
}

void FullWeights::take(const Weights& weights) {
  auto matrix = [](const Linear& linear) {
    if (linear.int8.defined()) {
      throw usage_error("full fine-tuning of an 8-bit base: rounding would swallow its small updates", "",
                        "policy.base: bf16, or lora.full: false");
    }
    return own_float(plain_weight(linear));
  };
  parameters.embedding_VH = own_float(weights.embedding_VH);
  for (const LayerWeights& layer : weights.layers) {
    parameters.layers.push_back({own_float(layer.input_norm_H), matrix(layer.qkv), own_float(layer.qkv.bias_N),
                                 matrix(layer.o), own_float(layer.o.bias_N), own_float(layer.post_norm_H),
                                 matrix(layer.gate_up), matrix(layer.down)});
  }
  parameters.final_norm_H = own_float(weights.final_norm_H);
  if (!weights.config.tie_embeddings) parameters.head_VH = matrix(weights.head);
}

std::shared_ptr<const Weights> FullWeights::round(bool for_training) const {
  auto out = std::make_shared<Weights>(shell_);
  auto matrix = [&](const at::Tensor& weight, const at::Tensor& bias) {
    // Copies of their own also in float: the parameters change in place.
    at::Tensor rounded = weight.to(shell_.dtype, /*non_blocking=*/false, /*copy=*/true);
    return make_linear(rounded, own_float(bias), false, for_training);
  };
  out->embedding_VH = parameters.embedding_VH.to(shell_.dtype, /*non_blocking=*/false, /*copy=*/true);
  for (const FullTensors::Layer& layer : parameters.layers) {
    out->layers.push_back({own_float(layer.input_norm_H), own_float(layer.post_norm_H),
                           matrix(layer.qkv_NK, layer.qkv_bias_N), matrix(layer.o_NK, layer.o_bias_N),
                           matrix(layer.gate_up_NK, {}), matrix(layer.down_NK, {})});
  }
  out->final_norm_H = own_float(parameters.final_norm_H);
  out->head = parameters.head_VH.defined() ? matrix(parameters.head_VH, {})
                                           : make_linear(out->embedding_VH, {}, false, for_training);
  return out;
}

const Weights& FullWeights::rounded() {
  if (!rounded_) rounded_ = round(true);
  return *rounded_;
}

void FullWeights::zero_gradients() {
  gradients = parameters;
  gradients.for_each([](const std::string&, at::Tensor& t) { t = at::zeros_like(t); });
}

std::shared_ptr<FullWeights> FullWeights::clone() const {
  std::shared_ptr<FullWeights> copy(new FullWeights);
  copy->shell_ = shell_;
  copy->parameters = parameters;
  copy->parameters.for_each([](const std::string&, at::Tensor& t) { t = t.clone(); });
  return copy;
}

void FullWeights::save(const std::string& folder, const std::string& model) const {
  fs::create_directories(folder);
  const ModelConfig& c = shell_.config;
  std::vector<TensorToWrite> tensors;
  auto rows = [&](const at::Tensor& fused, std::vector<std::pair<std::string, int64_t>> parts, const char* kind) {
    int64_t from = 0;
    for (const auto& [name, count] : parts) {
      if (fused.defined()) tensors.push_back(to_write(name + kind, fused.slice(0, from, from + count)));
      from += count;
    }
  };
  tensors.push_back(to_write("model.embed_tokens.weight", parameters.embedding_VH));
  for (size_t l = 0; l < parameters.layers.size(); ++l) {
    const FullTensors::Layer& layer = parameters.layers[l];
    std::string prefix = cat("model.layers.", l, "."), self = prefix + "self_attn.", mlp = prefix + "mlp.";
    std::vector<std::pair<std::string, int64_t>> qkv = {
        {self + "q_proj", c.q_size()}, {self + "k_proj", c.kv_size()}, {self + "v_proj", c.kv_size()}};
    tensors.push_back(to_write(prefix + "input_layernorm.weight", layer.input_norm_H));
    rows(layer.qkv_NK, qkv, ".weight");
    rows(layer.qkv_bias_N, qkv, ".bias");
    rows(layer.o_NK, {{self + "o_proj", c.hidden_size}}, ".weight");
    rows(layer.o_bias_N, {{self + "o_proj", c.hidden_size}}, ".bias");
    tensors.push_back(to_write(prefix + "post_attention_layernorm.weight", layer.post_norm_H));
    rows(layer.gate_up_NK, {{mlp + "gate_proj", c.intermediate_size}, {mlp + "up_proj", c.intermediate_size}},
         ".weight");
    rows(layer.down_NK, {{mlp + "down_proj", c.hidden_size}}, ".weight");
  }
  tensors.push_back(to_write("model.norm.weight", parameters.final_norm_H));
  if (parameters.head_VH.defined()) tensors.push_back(to_write("lm_head.weight", parameters.head_VH));
  Json config = read_json(fs::path(model) / "config.json");
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = "float32";
  write_file(fs::path(folder) / "config.json", config.dump(2) + "\n");
  fs::path generation = fs::path(model) / "generation_config.json";
  if (fs::exists(generation)) write_file(fs::path(folder) / "generation_config.json", read_file(generation));
  write_safetensors(fs::path(folder) / "model.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace tritonrl
