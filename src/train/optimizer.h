// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter, 2019), gradient clipping and the learning-rate schedule.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"

namespace tritonrl {

enum class Schedule { kCosine, kConstant };
constexpr auto enum_names(Schedule) { return std::array{"cosine", "constant"}; }

struct OptimizerConfig {
  double lr = 1e-3;  // Peak. The published 2e-4 is for the 7B model.
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double max_grad_norm = 1.0;  // Of all gradients together; 0 = no clipping.
  // cosine: lr rises linearly over the share `warmup` of a phase's updates and falls as a cosine to 0; the optimizer's
  // moments begin anew with each phase (an RL step is one). constant: lr rises over the first warmup_updates of all and
  // stays; the moments are kept from one RL step to the next.
  Schedule schedule = Schedule::kCosine;
  double warmup = 0.1;
  int64_t warmup_updates = 0;

  template <class V>
  void for_each_field(V& v) {
    v("lr", lr, "peak learning rate");
    v("beta1", beta1, "decay of the first moment");
    v("beta2", beta2, "decay of the second moment");
    v("eps", eps, "added to the root of the second moment");
    v("weight_decay", weight_decay, "decoupled weight decay");
    v("max_grad_norm", max_grad_norm, "gradients are scaled down to this norm; 0 = never");
    v("schedule", schedule, "cosine to 0 within each phase, or constant over all");
    v("warmup", warmup, "cosine: share of the steps with rising learning rate");
    v("warmup_updates", warmup_updates, "constant: updates with rising learning rate");
  }
  void validate() const;
};

// Learning rate of step `step` (0-based) of `steps`; constant: of step `step` of all.
double learning_rate(const OptimizerConfig& config, int64_t step, int64_t steps);

class AdamW {
 public:
  // Parameters are float tensors, updated in place.
  AdamW(OptimizerConfig config, std::vector<at::Tensor> parameters);

  // One update. Returns the gradients' norm before clipping; a norm that is not finite changes nothing and is returned.
  double step(const std::vector<at::Tensor>& gradients, double lr);

  // In the order of the parameters.
  const std::vector<at::Tensor>& first_moments() const { return m_; }
  int64_t steps_taken() const { return t_; }
  // One safetensors file, written atomically. load() throws Error (usage) for a file of other parameters.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  double step_fused(const std::vector<at::Tensor>& gradients,
                    double lr);  // On a GPU: all parameters in a few launches.

  OptimizerConfig config_;
  std::vector<at::Tensor> parameters_, m_, v_;
  int64_t t_ = 0;
};

}  // namespace tritonrl
