// SPDX-License-Identifier: Apache-2.0
#include "data/fusion.h"

#include <algorithm>

#include "data/signal.h"

namespace tritonrl {

namespace {

const std::vector<std::string> kReductions = {"sum",     "mean",      "amax", "amin", "l1_norm",
                                              "l2_norm", "logsumexp", "var",  "std"};
const std::vector<std::string> kSoftmaxes = {"softmax", "log_softmax", "softmin"};
constexpr size_t kMostInputs = 3;

bool needs_positive_x(const ElementOp& op) {
  return op.domain == Domain::kNotNegative || op.domain == Domain::kPositive;
}

std::vector<Core> norm_cores() {
  std::vector<Core> cores;
  for (double eps : {1e-5, 1e-3}) {
    cores.push_back({.op = "layer_norm", .weight = true, .bias = true, .eps = eps});
    cores.push_back({.op = "layer_norm", .weight = true, .eps = eps});
    cores.push_back({.op = "layer_norm", .eps = eps});
    cores.push_back({.op = "rms_norm", .weight = true, .eps = eps});
    cores.push_back({.op = "rms_norm", .eps = eps});
  }
  for (bool first_dim : {false, true}) {
    for (int p : {2, 1}) cores.push_back({.op = "normalize", .first_dim = first_dim, .p = p});
  }
  return cores;
}

std::vector<Core> gemm_cores() {
  return {{.op = "linear", .bias = true},
          {.op = "linear"},
          {.op = "matmul"},
          {.op = "matmul", .y_transposed = true},
          {.op = "matmul", .x_transposed = true},
          {.op = "matmul", .x_transposed = true, .y_transposed = true}};
}

std::vector<RecipeInput> gemm_inputs(const Core& core) {
  std::vector<RecipeInput> inputs = {{Layout::kLeft, false}};
  if (core.op == "matmul") inputs.push_back({Layout::kRight, false});
  return inputs;
}

void add_elementwise_operations(bool all_operators, std::vector<Recipe>& out) {
  for (const ElementOp& op : element_ops()) {
    if (!op.core && !all_operators) continue;
    std::vector<Layout> layouts = {Layout::kFull};
    if (op.arity == 2) layouts = {Layout::kFull, Layout::kRow, Layout::kColumn};
    for (const auto& attributes : op.attributes) {
      for (Layout layout : layouts) {
        Recipe recipe;
        recipe.inputs[0].positive = needs_positive_x(op);
        Step step{&op, attributes, {}};
        for (int i = 1; i < op.arity; ++i) {
          bool divisor = op.domain == Domain::kDivisor && i + 1 == op.arity;
          recipe.inputs.push_back({layout, divisor});
          step.others.push_back(i);
        }
        recipe.before = {step};
        out.push_back(recipe);
      }
    }
  }
}

// Builds one fusion; `good` turns false when a step finds no operator that does something.
class Fusion {
 public:
  Fusion(Family family, bool all_operators, Rng& rng) : all_operators_(all_operators), rng_(rng) {
    recipe_.family = family;
  }

  // Adds `count` steps that work on full (M, N) blocks, or, with `alone`, without other tensors.
  void add_steps(std::vector<Step> Recipe::*where, int64_t count, bool alone) {
    for (int64_t i = 0; i < count && good_; ++i) good_ = add_step(recipe_.*where, alone);
  }
  // x = x + y, the residual connection.
  void add_residual_input() {
    Step step{&element_op("add"), {}, {new_input(Layout::kFull, false)}};
    good_ = good_ && commit(recipe_.before, step);
  }
  void add_core(const Core& core) {
    recipe_.core = core;
    last_ = nullptr;
    if (recipe_.family == Family::kGemm) {
      recipe_.inputs = gemm_inputs(core);
      signals_.assign(recipe_.inputs.size(), nullptr);  // No step sees the factors.
      x_ = Signal::product(core.op == "linear" ? 0.6 : 6.0);
    } else {
      start();
      auto next = apply_row_core(core, x_);
      if (next) x_ = *next;
      good_ = good_ && next;
    }
  }
  void start() {
    if (!signals_.empty()) return;
    recipe_.inputs[0].positive = rng_.below(6) == 0;  // Roots and logarithms need it.
    signals_.push_back(&Signal::input(0, recipe_.inputs[0].positive));
    x_ = *signals_[0];
  }
  std::optional<Recipe> take() { return good_ ? std::optional<Recipe>(recipe_) : std::nullopt; }

 private:
  bool add_step(std::vector<Step>& steps, bool alone) {
    start();
    constexpr int kTries = 20;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const ElementOp& op = rng_.pick(element_ops());
      bool first = steps.empty() && &steps == &recipe_.before;
      if ((!op.core && !all_operators_) || &op == last_ || (op.jumps && !first) || (alone && op.arity > 1)) continue;
      // Half the draws of a binary operator are kept, or chains would be mostly those.
      if (op.arity == 1 && op.attributes.size() > 1 && rng_.below(2) == 0) continue;
      Step step{&op, rng_.pick(op.attributes), {}};
      auto saved_inputs = recipe_.inputs;
      auto saved_signals = signals_;
      bool full = true;
      for (int i = 1; i < op.arity; ++i) full &= add_operand(step, op.domain == Domain::kDivisor && i + 1 == op.arity);
      if (full && commit(steps, step)) return true;
      recipe_.inputs = saved_inputs;
      signals_ = saved_signals;
    }
    return false;
  }

  // Mostly a new input; sometimes the first one as it came in. False when there is no room.
  bool add_operand(Step& step, bool divisor) {
    bool keepable = recipe_.family != Family::kGemm && !(recipe_.before.empty() && recipe_.core.op.empty());
    if (keepable && !divisor && rng_.below(4) == 0) {
      step.others.push_back(kKeptInput);
      return true;
    }
    if (recipe_.inputs.size() >= kMostInputs) return false;
    int64_t draw = rng_.below(10);
    bool broadcast = !recipe_.core.first_dim;
    Layout layout = !broadcast || draw < 8 ? Layout::kFull : draw == 8 ? Layout::kRow : Layout::kColumn;
    step.others.push_back(new_input(layout, divisor));
    return true;
  }

  int new_input(Layout layout, bool positive) {
    start();
    recipe_.inputs.push_back({layout, positive});
    signals_.push_back(&Signal::input(signals_.size(), positive));
    return static_cast<int>(recipe_.inputs.size()) - 1;
  }

  bool commit(std::vector<Step>& steps, const Step& step) {
    std::vector<const Signal*> others;
    for (int other : step.others) others.push_back(signals_[other == kKeptInput ? 0 : static_cast<size_t>(other)]);
    auto next = apply_step(step, x_, others);
    if (!next) return false;
    x_ = *next;
    steps.push_back(step);
    last_ = step.op;
    return true;
  }

  bool all_operators_, good_ = true;
  Rng& rng_;
  Recipe recipe_;
  std::vector<const Signal*> signals_;  // One an input; empty until the first is needed.
  Signal x_;
  const ElementOp* last_ = nullptr;
};

}  // namespace

std::vector<Recipe> all_single_operations(bool all_operators) {
  std::vector<Recipe> out;
  add_elementwise_operations(all_operators, out);
  auto add = [&](Family family, const Core& core, std::vector<RecipeInput> inputs = {{}}) {
    Recipe recipe;
    recipe.family = family;
    recipe.inputs = std::move(inputs);
    recipe.core = core;
    out.push_back(recipe);
  };
  for (const std::string& op : kReductions) {
    for (bool first_dim : {false, true}) {
      for (bool keepdim : {false, true})
        add(Family::kReduction, {.op = op, .first_dim = first_dim, .keepdim = keepdim});
    }
  }
  for (const std::string& op : kSoftmaxes) {
    for (bool first_dim : {false, true}) add(Family::kSoftmax, {.op = op, .first_dim = first_dim});
  }
  for (const Core& core : norm_cores()) add(Family::kNorm, core);
  for (const Core& core : gemm_cores()) add(Family::kGemm, core, gemm_inputs(core));
  return out;
}

std::optional<Recipe> draw_fusion(Family family, bool all_operators, int64_t max_steps, Rng& rng) {
  Fusion fusion(family, all_operators, rng);
  switch (family) {
    case Family::kElementwise:
      fusion.add_steps(&Recipe::before, 2 + rng.below(max_steps - 1), false);
      break;
    case Family::kReduction: {
      Core core{.op = rng.pick(kReductions), .first_dim = rng.below(6) == 0, .keepdim = rng.below(4) == 0};
      int64_t before = rng.below(3), after = before == 0 ? 1 : rng.below(3) == 0 ? 1 : 0;
      if (core.first_dim)
        fusion.add_steps(&Recipe::before, before, true);
      else
        fusion.add_steps(&Recipe::before, before, false);
      fusion.add_core(core);
      fusion.add_steps(&Recipe::after, after, true);
      break;
    }
    case Family::kSoftmax: {
      int64_t before = 1 + rng.below(2);
      fusion.add_steps(&Recipe::before, before, false);
      fusion.add_core({.op = rng.pick(kSoftmaxes)});
      fusion.add_steps(&Recipe::after, rng.below(2), false);
      break;
    }
    case Family::kNorm: {
      auto cores = norm_cores();
      cores.resize(cores.size() - 2);  // Fusions work on rows.
      if (rng.below(2) == 0)
        fusion.add_residual_input();
      else
        fusion.add_steps(&Recipe::before, rng.below(2), false);
      fusion.add_core(rng.pick(cores));
      fusion.add_steps(&Recipe::after, 1 + rng.below(2), false);
      break;
    }
    case Family::kGemm:
      fusion.add_core(rng.pick(gemm_cores()));
      fusion.add_steps(&Recipe::after, 1 + rng.below(2), false);
      break;
  }
  return fusion.take();
}

}  // namespace tritonrl
