// SPDX-License-Identifier: Apache-2.0
// LoRA adapters (Hu et al., 2021): y = W x + (alpha / r) B A x, with W frozen.
//
// Parameters are float on the weights' device. A starts as PEFT has it (Kaiming-uniform with a = sqrt(5), that is
// uniform in +-1/sqrt(inputs)), B as zeros. Folders are in PEFT's layout: adapter_config.json and
// adapter_model.safetensors.
//
// Full fine-tuning takes the adapter's place everywhere: with `full` every weight is a parameter
// (model/files/full_weights.h), there are no pairs, and the base beside it only says what the model was before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/rng.h"
#include "model/files/full_weights.h"

namespace tritonrl {

struct LoraConfig {
  int64_t rank = 16;
  double alpha = 32;
  double dropout = 0.05;  // On the adapter's input, while training.
  bool full = false;
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

  template <class V>
  void for_each_field(V& v) {
    v("rank", rank, "rank r of the update");
    v("alpha", alpha, "the update is scaled by alpha / rank");
    v("dropout", dropout, "dropout on the adapter's input while training");
    v("full", full,
      "train every weight instead of adapters (full fine-tuning); checkpoints are whole models, in float");
    v("targets", targets, "projections that get an adapter");
  }
  void validate() const;
};

// From a folder in PEFT's layout. Throws Error (usage) for a sort of adapter that we do not have.
LoraConfig load_lora_config(const std::string& folder);

// The adapter of one projection; its outputs are rows [offset, offset + outputs) of the fused matrix.
struct LoraPair {
  std::string target;  // "q_proj", ...
  int64_t offset = 0;
  at::Tensor a_RK, b_NR;
  at::Tensor grad_a, grad_b;  // Float, made by zero_gradients().
};

struct LoraLayer {
  std::vector<LoraPair> qkv, o, gate_up, down;  // Per fused matrix; empty where there is no adapter.
};

class LoraAdapter {
 public:
  static LoraAdapter create(const Weights& weights, const LoraConfig& config, Rng rng);
  // Reads PEFT's layout, or a whole model as full fine-tuning saves it. Throws Error (usage) when it does not fit these
  // weights.
  static LoraAdapter load(const std::string& folder, const Weights& weights);
  // Writes PEFT's layout, or a whole model; base_model, from where PEFT shall load the base (a path or a hub id), goes
  // into adapter_config.json. Atomic per file.
  void save(const std::string& folder, const std::string& base_model) const;

  LoraAdapter clone() const;  // A deep copy.
  double scale() const { return config.alpha / static_cast<double>(config.rank); }
  // Calls fn(name, tensor) in a fixed order; names of adapters as in PEFT's files.
  void for_each_parameter(const std::function<void(const std::string&, at::Tensor&)>& fn);
  std::vector<at::Tensor> parameters();
  std::vector<at::Tensor> gradients();  // Same order as parameters().
  void zero_gradients();
  // Parameters were changed in place.
  void changed() {
    if (full) full->changed();
  }

  LoraConfig config;
  std::vector<LoraLayer> layers;
  std::shared_ptr<FullWeights> full;  // Null = an adapter.
};

// base with the adapter's update added to its matrices (sums in float, rounded once). Matrices without an adapter,
// norms and embeddings are shared with base. An 8-bit matrix stays as it is, shared too, and gets the update beside it
// (Linear::update): merged it would need 16 bits again, or lose the small update to rounding. The result is for
// generation only: it keeps nothing that gradients need, and does not follow later changes of the adapter.
std::shared_ptr<const Weights> merge(const Weights& base, const LoraAdapter& adapter);

}  // namespace tritonrl
