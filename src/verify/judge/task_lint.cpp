// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/task_lint.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/text.h"
#include "verify/trace/call_rules.h"

namespace tritonrl {
namespace {

constexpr double kAbsoluteTolerance = 1e-2;  // As verify/task_lint.cpp.
constexpr double kNoise = 1e-2;

bool passes(const DeviceLintRequest& request, const std::vector<at::Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Expectation& expected = (*request.expected)[i];
    if (outputs[i].sizes() != at::IntArrayRef(expected.shape()) || outputs[i].scalar_type() != expected.dtype()) {
      return false;
    }
    Judgement judgement(expected, request.names[i]);
    judgement.add(0, outputs[i].reshape({-1}));
    if (!judgement.finish().passed()) return false;
  }
  return true;
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

// What the outputs themselves show.
void describe(const DeviceLintRequest& request, const std::vector<at::Tensor>& outputs, DeviceLint* lint) {
  bool zero = true, constant = true, small = true;
  std::vector<std::pair<std::string, int64_t>> uniform;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& t = outputs[i];
    if (t.numel() == 0) continue;
    bool floating = at::isFloatingType(t.scalar_type());
    zero = zero && t.eq(0).all().item<bool>();
    small = small && floating && t.abs().le(kAbsoluteTolerance).all().item<bool>();
    constant = constant && t.eq(t.flatten()[0]).all().item<bool>();
    for (int64_t d = t.dim() - 1; d >= 0 && t.dim() >= 2; --d) {
      if (t.size(d) < 2 || !t.eq(t.narrow(d, 0, 1)).all().item<bool>()) continue;
      uniform.emplace_back(request.names[i], d);
      break;
    }
    if (floating && !t.isfinite().all().item<bool>()) lint->add("not_finite", request.names[i]);
    double noise = (*request.expected)[i].noise();
    if (noise >= kNoise) lint->add("noise_level", cat("the reference is off by ", fixed(100 * noise, 1), " %"));
  }
  if (zero) {
    lint->add("zero", "every output is zero");
  } else if (constant && std::any_of(outputs.begin(), outputs.end(), [](auto& t) { return t.numel() > 1; })) {
    lint->add("constant", "every output is one number all over");
  }
  for (const auto& [name, axis] : uniform) {
    if (!constant) lint->add("uniform", cat(name, " is the same all along axis ", axis));
  }
  if (small && !zero) lint->add("absolute", "every output is within 0.01 of zero");
}

}  // namespace

DeviceLint lint_on_device(const DeviceLintRequest& request) {
  DeviceLint lint;
  std::vector<at::Tensor> right = request.run(false);
  int64_t largest = 0;
  for (const at::Tensor& tensor : right) largest = std::max(largest, tensor.numel());
  if (largest == 0) {
    lint.add("constant", "the task has no output");
    return lint;
  }
  auto control = [&](const std::string& flag, const std::string& detail, const std::vector<at::Tensor>& outputs) {
    if (passes(request, outputs)) lint.add(flag, detail + " would pass");
  };
  control("control", "zeros", each(right, [](const at::Tensor& t) { return at::zeros_like(t); }));
  if (largest > 1) control("control", "means", each(right, mean_of));  // Of one number the mean is the answer.
  control("control", "negated outputs", each(right, negated));
  if (largest > 1) {
    control("control", "rotated outputs",
            each(right, [](const at::Tensor& t) { return t.reshape({-1}).roll(1).view(t.sizes()); }));
  }
  describe(request, right, &lint);
  right.clear();
  if (!passes(request, request.run(false))) {
    lint.add("nondeterministic", "two runs under one seed differ");
  }
  control("input_independent", "the outputs for other inputs", request.run(true));

  const CaseTrace& trace = request.tape->trace();
  for (size_t i = trace.init_steps + trace.input_steps; i < trace.tape.size() && !request.enough(); ++i) {
    if (trace.tape[i].is_launch || is_plumbing(trace.tape[i].op)) continue;
    if (!request.tape->can_drop(i)) {
      ++lint.drops_impossible;
      continue;
    }
    request.tape->drop(i);
    try {
      ++lint.drops_tried;
      control("drop", cat("drop ", trace.tape[i].op), request.run(false));
    } catch (const ReplayFailure&) {
      // The rest cannot do without it: such an answer does not pass.
    }
    request.tape->drop(std::nullopt);
  }
  return lint;
}

}  // namespace tritonrl
