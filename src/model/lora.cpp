// SPDX-License-Identifier: Apache-2.0
#include "model/lora.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/check.h"
#include "base/files/json.h"
#include "model/files/tensor_io.h"

namespace tritonrl {

namespace {

// Where each projection lives: which fused matrix, and which rows of it.
struct Projection {
  const char* name;
  const char* path;  // Inside "model.layers.N.".
  std::vector<LoraPair> LoraLayer::*pairs;
  Linear LayerWeights::*fused;
  int64_t (*offset)(const ModelConfig&);
  int64_t (*outputs)(const ModelConfig&);
};

const std::vector<Projection>& projections() {
  using C = ModelConfig;
  static const std::vector<Projection> all = {
      {"q_proj", "self_attn.q_proj", &LoraLayer::qkv, &LayerWeights::qkv, [](const C&) -> int64_t { return 0; },
       [](const C& c) { return c.q_size(); }},
      {"k_proj", "self_attn.k_proj", &LoraLayer::qkv, &LayerWeights::qkv, [](const C& c) { return c.q_size(); },
       [](const C& c) { return c.kv_size(); }},
      {"v_proj", "self_attn.v_proj", &LoraLayer::qkv, &LayerWeights::qkv,
       [](const C& c) { return c.q_size() + c.kv_size(); }, [](const C& c) { return c.kv_size(); }},
      {"o_proj", "self_attn.o_proj", &LoraLayer::o, &LayerWeights::o, [](const C&) -> int64_t { return 0; },
       [](const C& c) { return c.hidden_size; }},
      {"gate_proj", "mlp.gate_proj", &LoraLayer::gate_up, &LayerWeights::gate_up, [](const C&) -> int64_t { return 0; },
       [](const C& c) { return c.intermediate_size; }},
      {"up_proj", "mlp.up_proj", &LoraLayer::gate_up, &LayerWeights::gate_up,
       [](const C& c) { return c.intermediate_size; }, [](const C& c) { return c.intermediate_size; }},
      {"down_proj", "mlp.down_proj", &LoraLayer::down, &LayerWeights::down, [](const C&) -> int64_t { return 0; },
       [](const C& c) { return c.hidden_size; }},
  };
  return all;
}

const Projection& projection(const std::string& name) {
  for (const auto& p : projections()) {
    if (name == p.name) return p;
  }
  std::vector<std::string> known;
  for (const auto& p : projections()) known.push_back(p.name);
  std::string close = nearest(name, known);
  throw usage_error("LoRA target '" + name + "' is not known", "",
                    close.empty() ? "known: " + join(known, ", ") : "did you mean '" + close + "'?");
}

std::string parameter_name(size_t layer, const std::string& target, char which) {
  return cat("base_model.model.model.layers.", layer, ".", projection(target).path, ".lora_", which, ".weight");
}

at::Tensor uniform(Rng rng, at::IntArrayRef shape, double bound) {
  auto out = at::empty(shape, at::kFloat);
  float* data = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) data[i] = static_cast<float>((2 * rng.uniform() - 1) * bound);
  return out;
}

}  // namespace

void LoraConfig::validate() const {
  if (rank < 1) throw usage_error("rank must be at least 1");
  if (alpha <= 0) throw usage_error("alpha must be positive");
  if (dropout < 0 || dropout >= 1) throw usage_error("dropout must lie in [0, 1)");
  if (targets.empty()) throw usage_error("targets is empty", "", "name at least one projection, for example q_proj");
  for (const auto& target : targets) projection(target);
}

LoraAdapter LoraAdapter::create(const Weights& weights, const LoraConfig& config, Rng rng) {
  config.validate();
  LoraAdapter adapter;
  adapter.config = config;
  adapter.layers.resize(weights.layers.size());
  if (config.full) {
    adapter.full = std::make_shared<FullWeights>(weights);
    return adapter;
  }
  for (size_t l = 0; l < weights.layers.size(); ++l) {
    for (const auto& p : projections()) {
      if (std::find(config.targets.begin(), config.targets.end(), p.name) == config.targets.end()) continue;
      int64_t inputs = (weights.layers[l].*p.fused).inputs, outputs = p.outputs(weights.config);
      double bound = 1 / std::sqrt(static_cast<double>(inputs));
      LoraPair pair{p.name,
                    p.offset(weights.config),
                    uniform(rng.at(l).at(p.name), {config.rank, inputs}, bound),
                    at::zeros({outputs, config.rank}, at::kFloat),
                    {},
                    {}};
      pair.a_RK = pair.a_RK.to(weights.device);
      pair.b_NR = pair.b_NR.to(weights.device);
      (adapter.layers[l].*p.pairs).push_back(std::move(pair));
    }
  }
  return adapter;
}

void LoraAdapter::for_each_parameter(const std::function<void(const std::string&, at::Tensor&)>& fn) {
  if (full) return full->parameters.for_each(fn);
  for (size_t l = 0; l < layers.size(); ++l) {
    for (auto* pairs : {&layers[l].qkv, &layers[l].o, &layers[l].gate_up, &layers[l].down}) {
      for (auto& pair : *pairs) {
        fn(parameter_name(l, pair.target, 'A'), pair.a_RK);
        fn(parameter_name(l, pair.target, 'B'), pair.b_NR);
      }
    }
  }
}

std::vector<at::Tensor> LoraAdapter::parameters() {
  std::vector<at::Tensor> out;
  for_each_parameter([&](const std::string&, at::Tensor& t) { out.push_back(t); });
  return out;
}

namespace {

template <class Fn>
void for_each_pair(LoraAdapter& adapter, const Fn& fn) {
  for (auto& layer : adapter.layers) {
    for (auto* pairs : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) {
      for (auto& pair : *pairs) fn(pair);
    }
  }
}

}  // namespace

std::vector<at::Tensor> LoraAdapter::gradients() {
  std::vector<at::Tensor> out;
  if (full) full->gradients.for_each([&](const std::string&, at::Tensor& t) { out.push_back(t); });
  for_each_pair(*this, [&](LoraPair& pair) {
    out.push_back(pair.grad_a);
    out.push_back(pair.grad_b);
  });
  return out;
}

void LoraAdapter::zero_gradients() {
  if (full) full->zero_gradients();
  for_each_pair(*this, [](LoraPair& pair) {
    pair.grad_a = at::zeros_like(pair.a_RK);
    pair.grad_b = at::zeros_like(pair.b_NR);
  });
}

LoraAdapter LoraAdapter::clone() const {
  LoraAdapter copy = *this;
  if (full) {
    copy.full = full->clone();
    return copy;
  }
  copy.for_each_parameter([](const std::string&, at::Tensor& t) { t = t.clone(); });
  return copy;
}

LoraConfig load_lora_config(const std::string& folder) {
  std::string where = folder + "/adapter_config.json";
  Json json = read_json(where);
  auto refuse = [&](const std::string& what) { throw usage_error(what, where); };
  if (json.value("peft_type", "") != "LORA") refuse("is not a LoRA adapter");
  for (const char* key : {"use_dora", "use_rslora"}) {
    if (json.contains(key) && json[key] == true) refuse(cat(key, " is not supported"));
  }
  if (json.contains("bias") && json["bias"] != "none") refuse("adapters with biases are not supported");
  LoraConfig config;
  try {
    config.rank = json.at("r").get<int64_t>();
    config.alpha = json.at("lora_alpha").get<double>();
    config.dropout = json.value("lora_dropout", 0.0);
    config.targets = json.at("target_modules").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    refuse("r, lora_alpha or target_modules is missing or has the wrong type");
  }
  return config;
}

LoraAdapter LoraAdapter::load(const std::string& folder, const Weights& weights) {
  if (!std::filesystem::exists(folder + "/adapter_config.json") &&
      std::filesystem::exists(folder + "/model.safetensors")) {
    LoraAdapter whole;
    whole.config.full = true;
    whole.layers.resize(weights.layers.size());
    whole.full = std::make_shared<FullWeights>(folder, weights);
    return whole;
  }
  LoraConfig config = load_lora_config(folder);
  LoraAdapter adapter = create(weights, config, Rng(0));
  std::string file = folder + "/adapter_model.safetensors";
  auto tensors = SafetensorsFile::open(file);
  adapter.for_each_parameter([&](const std::string& name, at::Tensor& t) {
    const TensorView* view = tensors.find(name);
    if (!view) throw usage_error("tensor '" + name + "' is missing", file, "was the adapter made for another model?");
    if (view->shape != t.sizes().vec()) throw usage_error("tensor '" + name + "' has the wrong shape", file);
    t = to_tensor(*view).to(weights.device, at::kFloat);
  });
  return adapter;
}

void LoraAdapter::save(const std::string& folder, const std::string& base_model) const {
  if (full) return full->save(folder, base_model);
  std::filesystem::create_directories(folder);
  std::vector<std::string> targets = config.targets;
  std::sort(targets.begin(), targets.end());
  Json json = {{"peft_type", "LORA"},
               {"task_type", "CAUSAL_LM"},
               {"base_model_name_or_path", base_model},
               {"r", config.rank},
               {"lora_alpha", config.alpha},
               {"lora_dropout", config.dropout},
               {"target_modules", targets},
               {"bias", "none"},
               {"fan_in_fan_out", false},
               {"inference_mode", true},
               {"use_dora", false},
               {"use_rslora", false},
               {"init_lora_weights", true},
               {"modules_to_save", nullptr}};
  std::vector<TensorToWrite> tensors;
  auto copy = *this;
  copy.for_each_parameter([&](const std::string& name, at::Tensor& t) { tensors.push_back(to_write(name, t)); });
  write_safetensors(folder + "/adapter_model.safetensors", tensors, {{"format", "pt"}});
  write_file(folder + "/adapter_config.json", json.dump(2) + "\n");
}

namespace {

// The scale goes into B in float, before rounding.
std::shared_ptr<const LowRankUpdate> update_of(const std::vector<LoraPair>& pairs, double scale, at::ScalarType dtype) {
  auto update = std::make_shared<LowRankUpdate>();
  std::vector<at::Tensor> a;
  for (const auto& pair : pairs) {
    a.push_back(pair.a_RK.to(dtype));
    update->parts.push_back({pair.offset, make_linear((pair.b_NR * scale).to(dtype))});
  }
  update->a_RK = make_linear(at::cat(a));
  return update;
}

}  // namespace

std::shared_ptr<const Weights> merge(const Weights& base, const LoraAdapter& adapter) {
  CHECK(adapter.layers.size() == base.layers.size()) << "adapter of " << adapter.layers.size() << " layers";
  if (adapter.full) return adapter.full->snapshot();
  auto merged = std::make_shared<Weights>(base);
  auto apply = [&](Linear& linear, const std::vector<LoraPair>& pairs) {
    if (pairs.empty()) return;
    if (linear.int8.defined()) {
      linear.update = update_of(pairs, adapter.scale(), base.dtype);
      return;
    }
    auto sum = plain_weight(linear).to(at::kFloat);  // A copy, also when the weights are float:
    if (base.dtype == at::kFloat) sum = sum.clone();
    for (const auto& pair : pairs) {
      sum.slice(0, pair.offset, pair.offset + pair.b_NR.size(0)).add_(at::mm(pair.b_NR, pair.a_RK), adapter.scale());
    }
    linear = make_linear(sum.to(base.dtype), linear.bias_N);
  };
  for (size_t l = 0; l < base.layers.size(); ++l) {
    apply(merged->layers[l].qkv, adapter.layers[l].qkv);
    apply(merged->layers[l].o, adapter.layers[l].o);
    apply(merged->layers[l].gate_up, adapter.layers[l].gate_up);
    apply(merged->layers[l].down, adapter.layers[l].down);
  }
  return merged;
}

}  // namespace tritonrl
