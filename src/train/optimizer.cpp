// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "model/files/tensor_io.h"

namespace tritonrl {

void OptimizerConfig::validate() const {
  if (lr <= 0) throw usage_error("lr must be positive");
  if (beta1 < 0 || beta1 >= 1 || beta2 < 0 || beta2 >= 1) throw usage_error("beta1 and beta2 must lie in [0, 1)");
  if (warmup < 0 || warmup > 1) throw usage_error("warmup is a share of the steps: it must lie in [0, 1]");
  if (warmup_updates < 0) throw usage_error("warmup_updates must not be negative");
  if (max_grad_norm < 0 || weight_decay < 0 || eps <= 0) {
    throw usage_error("max_grad_norm and weight_decay must not be negative, eps must be positive");
  }
}

double learning_rate(const OptimizerConfig& config, int64_t step, int64_t steps) {
  if (config.schedule == Schedule::kConstant) {
    double risen = static_cast<double>(step + 1) / static_cast<double>(std::max<int64_t>(1, config.warmup_updates));
    return config.lr * std::min(1.0, risen);
  }
  auto warmup = static_cast<int64_t>(std::llround(config.warmup * static_cast<double>(steps)));
  if (step < warmup) return config.lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  double progress = static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, steps - warmup));
  return config.lr * 0.5 * (1 + std::cos(std::numbers::pi * std::min(progress, 1.0)));
}

AdamW::AdamW(OptimizerConfig config, std::vector<at::Tensor> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  for (const auto& p : parameters_) {
    m_.push_back(at::zeros_like(p));
    v_.push_back(at::zeros_like(p));
  }
}

double AdamW::step(const std::vector<at::Tensor>& gradients, double lr) {
  at::InferenceMode no_autograd;
  CHECK(gradients.size() == parameters_.size()) << gradients.size() << " gradients for " << parameters_.size();
  if (!gradients.empty() && !gradients[0].is_cpu()) return step_fused(gradients, lr);
  double squared = 0;
  for (const auto& g : gradients) squared += g.square().sum().item<double>();
  double norm = std::sqrt(squared);
  if (!std::isfinite(norm)) return norm;
  double scale = config_.max_grad_norm > 0 && norm > config_.max_grad_norm ? config_.max_grad_norm / norm : 1.0;
  ++t_;
  double correct1 = 1 - std::pow(config_.beta1, static_cast<double>(t_));
  double correct2 = 1 - std::pow(config_.beta2, static_cast<double>(t_));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor g = gradients[i] * scale;
    m_[i].mul_(config_.beta1).add_(g, 1 - config_.beta1);
    v_[i].mul_(config_.beta2).addcmul_(g, g, 1 - config_.beta2);
    if (config_.weight_decay > 0) parameters_[i].mul_(1 - lr * config_.weight_decay);
    auto denominator = (v_[i] / correct2).sqrt_().add_(config_.eps);
    parameters_[i].addcdiv_(m_[i], denominator, -lr / correct1);
  }
  return norm;
}

double AdamW::step_fused(const std::vector<at::Tensor>& gradients, double lr) {
  double norm = at::stack(at::_foreach_norm(gradients)).norm().item<double>();
  if (!std::isfinite(norm)) return norm;
  double scale = config_.max_grad_norm > 0 && norm > config_.max_grad_norm ? config_.max_grad_norm / norm : 1.0;
  ++t_;
  std::vector<at::Tensor> steps(gradients.size(), at::full({}, static_cast<double>(t_), gradients[0].options()));
  std::vector<at::Tensor> clipped = scale == 1 ? gradients : at::_foreach_mul(gradients, scale);
  at::_fused_adamw_(parameters_, clipped, m_, v_, {}, steps, lr, config_.beta1, config_.beta2, config_.weight_decay,
                    config_.eps, false, false);
  return norm;
}

void AdamW::save(const std::string& path) const {
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < m_.size(); ++i) {
    tensors.push_back(to_write(cat("first.", i), m_[i]));
    tensors.push_back(to_write(cat("second.", i), v_[i]));
  }
  write_safetensors(path, tensors, {{"format", "pt"}, {"steps_taken", cat(t_)}});
}

void AdamW::load(const std::string& path) {
  at::InferenceMode no_autograd;
  SafetensorsFile file = SafetensorsFile::open(path);
  auto steps = file.metadata().find("steps_taken");
  for (size_t i = 0; i < m_.size(); ++i) {
    for (auto [part, to] : {std::pair("first.", &m_[i]), std::pair("second.", &v_[i])}) {
      const TensorView* view = file.find(cat(part, i));
      if (!view || view->shape != to->sizes().vec() || steps == file.metadata().end()) {
        throw usage_error("holds the state of another optimizer", path, "was the adapter's rank or targets changed?");
      }
      to->copy_(to_tensor(*view));
    }
  }
  t_ = std::stoll(steps->second);
}

}  // namespace tritonrl
