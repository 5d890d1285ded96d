// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/task_lint.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/text.h"

namespace tritonrl {
namespace {

constexpr double kLooseTolerance = 1e-2;

Outcome judge(const LintRequest& request, const std::vector<at::Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Expectation& expected = (*request.expected)[i];
    if (outputs[i].sizes() != at::IntArrayRef(expected.shape()) || outputs[i].scalar_type() != expected.dtype()) {
      return Outcome::kWrongOutput;
    }
    Judgement judgement(expected, request.names[i]);
    judgement.add(0, outputs[i].reshape({-1}));
    Outcome outcome = judgement.finish().outcome;
    if (outcome != Outcome::kPass) return outcome;
  }
  return Outcome::kPass;
}

template <class Fn>
std::vector<at::Tensor> each(const std::vector<at::Tensor>& tensors, const Fn& fn) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) out.push_back(fn(tensor));
  return out;
}

at::Tensor mean_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return tensor;
  at::Tensor wide = at::isFloatingType(tensor.scalar_type()) ? tensor : tensor.to(at::kDouble);
  return at::full_like(tensor, wide.to(at::kFloat).mean().item());
}

at::Tensor negated(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool ? tensor.logical_not() : tensor.neg();
}

bool zeros_pass_loosely(const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type())) return tensor.eq(0).all().item<bool>();
  return tensor.abs().mul(1 - kLooseTolerance).le(kLooseTolerance).all().item<bool>();
}

// The dimensions (sizes above 1) along which every element is the same.
std::vector<int64_t> uniform_dimensions(const at::Tensor& tensor) {
  std::vector<int64_t> found;
  for (int64_t d = 0; d < tensor.dim() && tensor.numel() > 0; ++d) {
    if (tensor.size(d) > 1 && tensor.eq(tensor.narrow(d, 0, 1)).all().item<bool>()) found.push_back(d);
  }
  return found;
}

}  // namespace

LintReport lint_reference(const LintRequest& request) {
  LintReport report;
  std::vector<at::Tensor> right = request.run(false);
  int64_t largest = 0;
  for (const at::Tensor& tensor : right) largest = std::max(largest, tensor.numel());
  if (largest == 0) {
    report.findings.push_back("no_output");
    return report;
  }
  auto control = [&](const std::string& name, const std::vector<at::Tensor>& outputs) {
    if (judge(request, outputs) == Outcome::kPass) report.findings.push_back(name);
  };
  control("zeros", each(right, [](const at::Tensor& t) { return at::zeros_like(t); }));
  control("mean", each(right, mean_of));
  control("negated", each(right, negated));
  if (largest > 1) {
    control("rotated", each(right, [](const at::Tensor& t) { return t.reshape({-1}).roll(1).view(t.sizes()); }));
  }
  if (std::all_of(right.begin(), right.end(), zeros_pass_loosely)) report.remarks.push_back("zeros_within_0.01");
  for (size_t i = 0; i < right.size(); ++i) {
    if (at::isFloatingType(right[i].scalar_type()) && !right[i].isfinite().all().item<bool>()) {
      report.remarks.push_back(request.names[i] + " is not_finite");
    }
    for (int64_t d : uniform_dimensions(right[i])) {
      report.remarks.push_back(cat(request.names[i], " is uniform along dimension ", d));
    }
  }
  right.clear();
  if (judge(request, request.run(false)) != Outcome::kPass) report.findings.push_back("nondeterministic");
  control("other_inputs", request.run(true));

  const Plan& plan = request.tape->plan();
  for (size_t i = plan.init_steps + plan.input_steps; i < plan.tape.size() && !request.enough(); ++i) {
    if (plan.tape[i].is_launch || is_plumbing(plan.tape[i].op)) continue;
    if (!request.tape->can_drop(i)) {
      ++report.drops_impossible;
      continue;
    }
    request.tape->drop(i);
    try {
      ++report.drops_tried;
      control(cat("drop ", plan.tape[i].op), request.run(false));
    } catch (const ReplayFailure&) {
      // The rest cannot do without it: such an answer does not pass.
    }
    request.tape->drop(std::nullopt);
  }
  return report;
}

}  // namespace tritonrl
