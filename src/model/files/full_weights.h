// SPDX-License-Identifier: Apache-2.0
// FullWeights: every weight of a model as a float parameter with its gradient, for full fine-tuning.
//
// Products are computed in the model's compute dtype, from copies rounded anew after each update; the optimizer works
// on the float parameters ("master weights", Micikevicius et al., "Mixed Precision Training", ICLR 2018). Folders are
// ordinary models in Hugging Face's layout, in float, so that training continues from them with the same bits.
// A model of n parameters takes 4 n bytes for the parameters, 4 n for gradients, 8 n for AdamW's moments and 2 n for
// the rounded copies (twice that on the CPU), beside the base model itself. Thread rule: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/files/weights.h"

namespace tritonrl {

// Float. Matrices as they are fused (model/files/weights.h); undefined where the model has none.
struct FullTensors {
  struct Layer {
    at::Tensor input_norm_H, qkv_NK, qkv_bias_N, o_NK, o_bias_N, post_norm_H, gate_up_NK, down_NK;
  };
  at::Tensor embedding_VH;  // The head too where the model ties them.
  std::vector<Layer> layers;
  at::Tensor final_norm_H, head_VH;

  // Calls fn(name, tensor) for each that is there, in a fixed order.
  void for_each(const std::function<void(const std::string&, at::Tensor&)>& fn);
};

class FullWeights {
 public:
  // Copies. Throws Error (usage) for an 8-bit base.
  explicit FullWeights(const Weights& base);
  // Of a folder that save() wrote, for a model of base's shape. Throws Error (usage).
  FullWeights(const std::string& folder, const Weights& base);

  // model.safetensors, and config.json and generation_config.json of the model's folder. Throws Error (environment).
  void save(const std::string& folder, const std::string& model) const;
  std::shared_ptr<FullWeights> clone() const;  // Parameters alone.

  // The parameters in compute dtype, for products and gradients; made anew when changed() was called.
  const Weights& rounded();
  // The same as a copy of its own, for generation.
  std::shared_ptr<const Weights> snapshot() const { return round(false); }
  void changed() { rounded_.reset(); }
  void zero_gradients();

  FullTensors parameters, gradients;

 private:
  FullWeights() = default;
  void take(const Weights& weights);
  std::shared_ptr<const Weights> round(bool for_training) const;

  Weights shell_;  // Without matrices.
  std::shared_ptr<const Weights> rounded_;
};

}  // namespace tritonrl
