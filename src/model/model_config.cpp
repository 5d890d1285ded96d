// SPDX-License-Identifier: Apache-2.0
#include "model/model_config.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {

namespace {

template <class T>
T required(const Json& json, const char* key, const std::string& where) {
  auto it = json.find(key);
  if (it == json.end() || it->is_null()) throw usage_error(cat("'", key, "' is missing"), where);
  try {
    return it->get<T>();
  } catch (const Json::exception&) {
    throw usage_error(cat("'", key, "' has the wrong type"), where);
  }
}

template <class T>
T optional(const Json& json, const char* key, T fallback, const std::string& where) {
  return json.contains(key) && !json[key].is_null() ? required<T>(json, key, where) : fallback;
}

std::vector<int64_t> ids(const Json& json) {
  if (json.is_number_integer()) return {json.get<int64_t>()};
  std::vector<int64_t> out;
  if (json.is_array()) {
    for (const auto& item : json) {
      if (item.is_number_integer()) out.push_back(item.get<int64_t>());
    }
  }
  return out;
}

void read_rope_scaling(ModelConfig& c, const Json& json, const std::string& where) {
  // transformers 5 calls it rope_parameters and puts rope_theta there as well.
  const Json* scaling = nullptr;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (json.contains(key) && json[key].is_object()) scaling = &json[key];
  }
  if (!scaling) return;
  c.rope_theta = optional(*scaling, "rope_theta", c.rope_theta, where);
  c.rope_type = scaling->contains("rope_type") ? required<std::string>(*scaling, "rope_type", where)
                                               : optional<std::string>(*scaling, "type", "default", where);
  if (c.rope_type == "default") return;
  if (c.rope_type != "linear" && c.rope_type != "llama3") {
    throw usage_error(cat("rope scaling of type '", c.rope_type, "' is not supported"), where,
                      "supported: default, linear, llama3");
  }
  c.rope_factor = required<double>(*scaling, "factor", where);
  if (c.rope_type == "llama3") {
    c.rope_low_freq_factor = required<double>(*scaling, "low_freq_factor", where);
    c.rope_high_freq_factor = required<double>(*scaling, "high_freq_factor", where);
    c.rope_original_positions = required<int64_t>(*scaling, "original_max_position_embeddings", where);
  }
}

}  // namespace

std::vector<double> ModelConfig::rope_inverse_frequencies() const {
  std::vector<double> out;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    double f = std::pow(rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (rope_type == "linear") f /= rope_factor;
    if (rope_type == "llama3") {  // Long wavelengths are stretched, short ones kept, the band between is blended.
      double wavelength = 2 * std::numbers::pi / f, original = static_cast<double>(rope_original_positions);
      double smooth = (original / wavelength - rope_low_freq_factor) / (rope_high_freq_factor - rope_low_freq_factor);
      if (wavelength > original / rope_low_freq_factor) {
        f /= rope_factor;
      } else if (wavelength > original / rope_high_freq_factor) {
        f = (1 - smooth) * f / rope_factor + smooth * f;
      }
    }
    out.push_back(f);
  }
  return out;
}

ModelConfig ModelConfig::load(const std::string& folder) {
  std::string where = folder + "/config.json";
  Json json = read_json(where);
  if (!json.is_object()) throw usage_error("is not a model configuration", where);
  ModelConfig c;
  c.model_type = required<std::string>(json, "model_type", where);
  if (c.model_type != "llama" && c.model_type != "qwen2") {
    throw usage_error(cat("model_type '", c.model_type, "' is not supported"), where, "supported: llama, qwen2");
  }
  c.vocab_size = required<int64_t>(json, "vocab_size", where);
  c.hidden_size = required<int64_t>(json, "hidden_size", where);
  c.layers = required<int64_t>(json, "num_hidden_layers", where);
  c.heads = required<int64_t>(json, "num_attention_heads", where);
  c.kv_heads = optional<int64_t>(json, "num_key_value_heads", c.heads, where);
  c.intermediate_size = required<int64_t>(json, "intermediate_size", where);
  for (int64_t size : {c.vocab_size, c.hidden_size, c.layers, c.heads, c.kv_heads, c.intermediate_size}) {
    if (size <= 0) throw usage_error("sizes must be positive", where);
  }
  c.head_dim = optional<int64_t>(json, "head_dim", c.hidden_size / c.heads, where);
  c.rms_norm_eps = required<double>(json, "rms_norm_eps", where);
  c.rope_theta = optional(json, "rope_theta", 10000.0, where);
  c.max_positions = required<int64_t>(json, "max_position_embeddings", where);
  c.tie_embeddings = optional(json, "tie_word_embeddings", false, where);
  bool attention_bias = optional(json, "attention_bias", false, where);
  c.qkv_bias = c.model_type == "qwen2" || attention_bias;
  c.o_bias = c.model_type == "llama" && attention_bias;
  read_rope_scaling(c, json, where);
  auto activation = optional<std::string>(json, "hidden_act", "silu", where);
  if (activation != "silu")
    throw usage_error(cat("hidden_act '", activation, "' is not supported"), where, "supported: silu");
  if (optional(json, "mlp_bias", false, where)) throw usage_error("mlp_bias is not supported", where);
  if (optional(json, "use_sliding_window", false, where)) {
    throw usage_error("use_sliding_window is not supported", where,
                      "set it to false for contexts shorter than the window");
  }
  if (c.heads % c.kv_heads != 0 || c.head_dim % 2 != 0 || c.head_dim > 256) {
    throw usage_error(
        cat("heads ", c.heads, ", key-value heads ", c.kv_heads, " and head size ", c.head_dim, " do not fit together"),
        where);
  }
  if (json.contains("eos_token_id")) c.eos_ids = ids(json["eos_token_id"]);
  std::string generation = folder + "/generation_config.json";
  if (std::filesystem::exists(generation)) {
    Json more = read_json(generation);
    if (more.is_object() && more.contains("eos_token_id")) {
      for (int64_t id : ids(more["eos_token_id"])) {
        if (std::find(c.eos_ids.begin(), c.eos_ids.end(), id) == c.eos_ids.end()) c.eos_ids.push_back(id);
      }
    }
  }
  return c;
}

}  // namespace tritonrl
