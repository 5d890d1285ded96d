// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: the one table of what works on single elements.
#include <algorithm>
#include <cmath>

#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

using In = const double*;

// Torch, Triton ("" = none) and plain arithmetic of one operator.
Operator pointwise(const char* name, int arity, const char* torch, const char* triton, double (*value)(In, In),
                   Domain domain = Domain::kAny, std::vector<std::vector<double>> attributes = {{}}) {
  Operator op;
  op.name = name;
  op.family = "elementwise";
  op.work = *triton ? Work::kPointwise : Work::kOther;
  op.build = build_pointwise;
  op.arity = arity;
  op.torch = torch;
  op.triton = triton;
  op.value = value;
  op.domain = domain;
  op.attributes = std::move(attributes);
  op.weight = *triton ? 3 : 1;
  return op;
}

// Compares or steps: only ever applied to inputs as they came in, where rounding cannot flip a value.
Operator step(const char* name, int arity, const char* torch, const char* triton, double (*value)(In, In),
              std::vector<std::vector<double>> attributes = {{}}) {
  Operator op = pointwise(name, arity, torch, triton, value, Domain::kAny, std::move(attributes));
  op.family = "compare";
  op.jumps = true;
  return op;
}

// One of the small set `operators: [core]`.
Operator core(const char* name, int arity, const char* torch, const char* triton, double (*value)(In, In),
              Domain domain = Domain::kAny, std::vector<std::vector<double>> attributes = {{}}) {
  Operator op = pointwise(name, arity, torch, triton, value, domain, std::move(attributes));
  op.core = true;
  op.weight = 4;
  return op;
}

Operator swaps(Operator op) {
  op.commutative = true;
  return op;
}

Operator jumps(Operator op) {
  op.jumps = true;
  return op;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double clamp(double x, double low, double high) { return std::min(std::max(x, low), high); }

}  // namespace

std::vector<Operator> pointwise_operators() {
  using enum Domain;
  // Triton has no tanh of its own on the GPU: 2 * sigmoid(2 x) - 1 is exact enough in fp32 and needs no library.
  std::vector<Operator> ops = {
      // Unary, without attributes.
      core("relu", 1, "torch.relu({x})", "tl.maximum({x}, 0.0)", [](In v, In) { return std::max(v[0], 0.0); }),
      core("sigmoid", 1, "torch.sigmoid({x})", "tl.sigmoid({x})", [](In v, In) { return sigmoid(v[0]); }),
      core("tanh", 1, "torch.tanh({x})", "2 * tl.sigmoid(2 * {x}) - 1", [](In v, In) { return std::tanh(v[0]); }),
      core("silu", 1, "F.silu({x})", "{x} * tl.sigmoid({x})", [](In v, In) { return v[0] * sigmoid(v[0]); }),
      core("gelu", 1, "F.gelu({x})", "0.5 * {x} * (1.0 + tl.erf({x} * 0.7071068))",
           [](In v, In) { return 0.5 * v[0] * (1 + std::erf(v[0] * std::sqrt(0.5))); }),
      core("gelu_tanh", 1, "F.gelu({x}, approximate=\"tanh\")",
           "{x} * tl.sigmoid(1.595769 * ({x} + 0.044715 * {x} * {x} * {x}))",
           [](In v, In) { return v[0] * sigmoid(1.5957691216057308 * (v[0] + 0.044715 * v[0] * v[0] * v[0])); }),
      core(
          "exp", 1, "torch.exp({x})", "tl.exp({x})", [](In v, In) { return std::exp(v[0]); }, kSmall),
      core("abs", 1, "torch.abs({x})", "tl.abs({x})", [](In v, In) { return std::abs(v[0]); }),
      core("neg", 1, "-{x}", "-{x}", [](In v, In) { return -v[0]; }),
      core("square", 1, "torch.square({x})", "{x} * {x}", [](In v, In) { return v[0] * v[0]; }),
      core(
          "sqrt", 1, "torch.sqrt({x})", "tl.sqrt({x})", [](In v, In) { return std::sqrt(v[0]); }, kPositive),
      core("softplus", 1, "F.softplus({x})", "tl.where({x} > 20.0, {x}, tl.log(1.0 + tl.exp({x})))",
           [](In v, In) { return softplus(v[0]); }),
      core("hardswish", 1, "F.hardswish({x})", "{x} * tl.minimum(tl.maximum({x} + 3.0, 0.0), 6.0) / 6.0",
           [](In v, In) { return v[0] * clamp(v[0] + 3, 0, 6) / 6; }),
      core("mish", 1, "F.mish({x})", "{x} / (1.0 + 2.0 / (tl.exp({x}) * (tl.exp({x}) + 2.0)))",
           [](In v, In) { return v[0] * std::tanh(softplus(v[0])); }),
      pointwise("relu6", 1, "F.relu6({x})", "tl.minimum(tl.maximum({x}, 0.0), 6.0)",
                [](In v, In) { return clamp(v[0], 0, 6); }),
      pointwise("hardsigmoid", 1, "F.hardsigmoid({x})", "tl.minimum(tl.maximum({x} + 3.0, 0.0), 6.0) / 6.0",
                [](In v, In) { return clamp(v[0] + 3, 0, 6) / 6; }),
      pointwise(
          "selu", 1, "F.selu({x})", "1.050701 * tl.where({x} > 0, {x}, 1.6732632 * (tl.exp({x}) - 1.0))",
          [](In v, In) { return 1.0507009873554805 * (v[0] > 0 ? v[0] : 1.6732632423543772 * std::expm1(v[0])); }),
      pointwise("softsign", 1, "F.softsign({x})", "{x} / (1.0 + tl.abs({x}))",
                [](In v, In) { return v[0] / (1 + std::abs(v[0])); }),
      pointwise("tanhshrink", 1, "F.tanhshrink({x})", "{x} - (2 * tl.sigmoid(2 * {x}) - 1)",
                [](In v, In) { return v[0] - std::tanh(v[0]); }),
      pointwise("logsigmoid", 1, "F.logsigmoid({x})", "tl.minimum({x}, 0.0) - tl.log(1.0 + tl.exp(-tl.abs({x})))",
                [](In v, In) { return -softplus(-v[0]); }),
      pointwise("sin", 1, "torch.sin({x})", "tl.sin({x})", [](In v, In) { return std::sin(v[0]); }),
      pointwise("cos", 1, "torch.cos({x})", "tl.cos({x})", [](In v, In) { return std::cos(v[0]); }),
      pointwise("erf", 1, "torch.erf({x})", "tl.erf({x})", [](In v, In) { return std::erf(v[0]); }),
      pointwise(
          "exp2", 1, "torch.exp2({x})", "tl.exp2({x})", [](In v, In) { return std::exp2(v[0]); }, kSmall),
      pointwise(
          "expm1", 1, "torch.expm1({x})", "tl.exp({x}) - 1.0", [](In v, In) { return std::expm1(v[0]); }, kSmall),
      pointwise(
          "log1p", 1, "torch.log1p({x})", "tl.log(1.0 + {x})", [](In v, In) { return std::log1p(v[0]); }, kNotNegative),
      pointwise(
          "log", 1, "torch.log({x})", "tl.log({x})", [](In v, In) { return std::log(v[0]); }, kPositive),
      pointwise(
          "rsqrt", 1, "torch.rsqrt({x})", "1.0 / tl.sqrt({x})", [](In v, In) { return 1 / std::sqrt(v[0]); },
          kPositive),
      pointwise(
          "reciprocal", 1, "torch.reciprocal({x})", "1.0 / {x}", [](In v, In) { return 1 / v[0]; }, kPositive),
      pointwise("cube", 1, "torch.pow({x}, 3)", "{x} * {x} * {x}", [](In v, In) { return v[0] * v[0] * v[0]; }),
      // Unary, with attributes.
      core("leaky_relu", 1, "F.leaky_relu({x}, {a})", "tl.where({x} > 0, {x}, {a} * {x})",
           [](In v, In a) { return v[0] > 0 ? v[0] : a[0] * v[0]; }, kAny, {{0.01}, {0.05}, {0.1}, {0.2}, {0.3}}),
      core("elu", 1, "F.elu({x}, {a})", "tl.where({x} > 0, {x}, {a} * (tl.exp({x}) - 1.0))",
           [](In v, In a) { return v[0] > 0 ? v[0] : a[0] * std::expm1(v[0]); }, kAny, {{0.5}, {1.0}, {1.5}, {2.0}}),
      core("clamp", 1, "torch.clamp({x}, {a}, {b})", "tl.minimum(tl.maximum({x}, {a}), {b})",
           [](In v, In a) { return clamp(v[0], a[0], a[1]); }, kAny,
           {{-0.5, 0.5}, {-0.5, 1.0}, {0.1, 0.9}, {-1.5, 1.5}, {-0.2, 2.0}}),
      core("hardtanh", 1, "F.hardtanh({x}, {a}, {b})", "tl.minimum(tl.maximum({x}, {a}), {b})",
           [](In v, In a) { return clamp(v[0], a[0], a[1]); }, kAny, {{-1.0, 1.0}, {-2.0, 2.0}, {-0.5, 0.5}}),
      core("add_scalar", 1, "{x} + {a}", "{x} + {a}", [](In v, In a) { return v[0] + a[0]; }, kAny,
           {{0.5}, {1.0}, {1.5}, {2.0}, {3.0}}),
      core("sub_scalar", 1, "{x} - {a}", "{x} - {a}", [](In v, In a) { return v[0] - a[0]; }, kAny,
           {{0.5}, {1.0}, {1.5}, {2.0}}),
      core("mul_scalar", 1, "{x} * {a}", "{x} * {a}", [](In v, In a) { return v[0] * a[0]; }, kAny,
           {{0.1}, {0.25}, {0.5}, {1.5}, {2.0}, {3.0}}),
      core("div_scalar", 1, "{x} / {a}", "{x} / {a}", [](In v, In a) { return v[0] / a[0]; }, kAny,
           {{1.5}, {2.0}, {3.0}, {4.0}, {8.0}}),
      core("rsub_scalar", 1, "{a} - {x}", "{a} - {x}", [](In v, In a) { return a[0] - v[0]; }, kAny,
           {{1.0}, {0.5}, {2.0}}),
      pointwise("celu", 1, "F.celu({x}, {a})", "tl.where({x} > 0, {x}, {a} * (tl.exp({x} / {a}) - 1.0))",
                [](In v, In a) { return v[0] > 0 ? v[0] : a[0] * std::expm1(v[0] / a[0]); }, kAny, {{0.5}, {2.0}}),
      pointwise("clamp_min", 1, "torch.clamp({x}, min={a})", "tl.maximum({x}, {a})",
                [](In v, In a) { return std::max(v[0], a[0]); }, kAny, {{-0.5}, {0.25}, {0.5}}),
      pointwise("clamp_max", 1, "torch.clamp({x}, max={a})", "tl.minimum({x}, {a})",
                [](In v, In a) { return std::min(v[0], a[0]); }, kAny, {{-0.25}, {0.5}, {1.0}}),
      pointwise("softshrink", 1, "F.softshrink({x}, {a})", "tl.maximum({x} - {a}, 0.0) + tl.minimum({x} + {a}, 0.0)",
                [](In v, In a) { return std::max(v[0] - a[0], 0.0) + std::min(v[0] + a[0], 0.0); }, kAny,
                {{0.2}, {0.5}, {1.0}}),
      jumps(pointwise("hardshrink", 1, "F.hardshrink({x}, {a})", "tl.where(tl.abs({x}) > {a}, {x}, 0.0)",
                      [](In v, In a) { return std::abs(v[0]) > a[0] ? v[0] : 0.0; }, kAny, {{0.2}, {0.5}, {1.0}})),
      jumps(pointwise("threshold", 1, "F.threshold({x}, {a}, {b})", "tl.where({x} > {a}, {x}, {b})",
                      [](In v, In a) { return v[0] > a[0] ? v[0] : a[1]; }, kAny,
                      {{0.1, -1.0}, {0.5, 0.0}, {-0.5, 2.0}})),
      // Two and three tensors.
      swaps(core("add", 2, "{x} + {y}", "{x} + {y}", [](In v, In) { return v[0] + v[1]; })),
      core("sub", 2, "{x} - {y}", "{x} - {y}", [](In v, In) { return v[0] - v[1]; }),
      swaps(core("mul", 2, "{x} * {y}", "{x} * {y}", [](In v, In) { return v[0] * v[1]; })),
      core(
          "div", 2, "{x} / {y}", "{x} / {y}", [](In v, In) { return v[0] / v[1]; }, kDivisor),
      swaps(core("maximum", 2, "torch.maximum({x}, {y})", "tl.maximum({x}, {y})",
                 [](In v, In) { return std::max(v[0], v[1]); })),
      swaps(core("minimum", 2, "torch.minimum({x}, {y})", "tl.minimum({x}, {y})",
                 [](In v, In) { return std::min(v[0], v[1]); })),
      pointwise("add_alpha", 2, "torch.add({x}, {y}, alpha={a})", "{x} + {a} * {y}",
                [](In v, In a) { return v[0] + a[0] * v[1]; }, kAny, {{0.5}, {2.0}, {3.0}}),
      pointwise("lerp", 2, "torch.lerp({x}, {y}, {a})", "{x} + {a} * ({y} - {x})",
                [](In v, In a) { return v[0] + a[0] * (v[1] - v[0]); }, kAny, {{0.1}, {0.25}, {0.3}}),
      swaps(pointwise("hypot", 2, "torch.hypot({x}, {y})", "tl.sqrt({x} * {x} + {y} * {y})",
                      [](In v, In) { return std::hypot(v[0], v[1]); })),
      jumps(pointwise("where", 2, "torch.where({x} > {a}, {x}, {y})", "tl.where({x} > {a}, {x}, {y})",
                      [](In v, In a) { return v[0] > a[0] ? v[0] : v[1]; }, kAny, {{0.0}, {0.5}})),
      pointwise("addcmul", 3, "torch.addcmul({x}, {y}, {z}, value={a})", "{x} + {a} * {y} * {z}",
                [](In v, In a) { return v[0] + a[0] * v[1] * v[2]; }, kAny, {{0.5}, {2.0}}),
      pointwise("addcdiv", 3, "torch.addcdiv({x}, {y}, {z}, value={a})", "{x} + {a} * {y} / {z}",
                [](In v, In a) { return v[0] + a[0] * v[1] / v[2]; }, kDivisor, {{0.5}, {2.0}}),
      // Rarer ones; those with "" have no kernel of ours.
      pointwise(
          "log2", 1, "torch.log2({x})", "tl.log2({x})", [](In v, In) { return std::log2(v[0]); }, kPositive),
      pointwise(
          "log10", 1, "torch.log10({x})", "tl.log({x}) * 0.4342945", [](In v, In) { return std::log10(v[0]); },
          kPositive),
      pointwise(
          "sinh", 1, "torch.sinh({x})", "0.5 * (tl.exp({x}) - tl.exp(-{x}))", [](In v, In) { return std::sinh(v[0]); },
          kSmall),
      pointwise(
          "cosh", 1, "torch.cosh({x})", "0.5 * (tl.exp({x}) + tl.exp(-{x}))", [](In v, In) { return std::cosh(v[0]); },
          kSmall),
      pointwise("pow_scalar", 1, "torch.pow({x}, {a})", "tl.exp({a} * tl.log({x}))",
                [](In v, In a) { return std::pow(v[0], a[0]); }, kPositive, {{0.5}, {1.5}, {2.5}, {-0.5}}),
      pointwise("softplus_beta", 1, "F.softplus({x}, beta={a})",
                "tl.where({a} * {x} > 20.0, {x}, tl.log(1.0 + tl.exp({a} * {x})) / {a})",
                [](In v, In a) { return softplus(a[0] * v[0]) / a[0]; }, kAny, {{0.5}, {2.0}}),
      pointwise("logaddexp", 2, "torch.logaddexp({x}, {y})",
                "tl.maximum({x}, {y}) + tl.log(1.0 + tl.exp(-tl.abs({x} - {y})))",
                [](In v, In) { return std::max(v[0], v[1]) + std::log1p(std::exp(-std::abs(v[0] - v[1]))); }),
      pointwise("squared_difference", 2, "({x} - {y}) ** 2", "({x} - {y}) * ({x} - {y})",
                [](In v, In) { return (v[0] - v[1]) * (v[0] - v[1]); }),
      pointwise("gate", 2, "{x} * torch.sigmoid({y})", "{x} * tl.sigmoid({y})",
                [](In v, In) { return v[0] / (1 + std::exp(-v[1])); }),
      pointwise("silu_mul", 2, "F.silu({x}) * {y}", "{x} * tl.sigmoid({x}) * {y}",
                [](In v, In) { return v[0] / (1 + std::exp(-v[0])) * v[1]; }),
      pointwise(
          "xlogy", 2, "torch.xlogy({x}, {y})", "{x} * tl.log({y})", [](In v, In) { return v[0] * std::log(v[1]); },
          kDivisor),
      pointwise("atan", 1, "torch.atan({x})", "", [](In v, In) { return std::atan(v[0]); }),
      pointwise("asinh", 1, "torch.asinh({x})", "", [](In v, In) { return std::asinh(v[0]); }),
      pointwise("erfc", 1, "torch.erfc({x})", "1.0 - tl.erf({x})", [](In v, In) { return std::erfc(v[0]); }),
      pointwise("tan", 1, "torch.tan(0.2 * {x})", "", [](In v, In) { return std::tan(0.2 * v[0]); }),
      pointwise("sinc", 1, "torch.sinc({x})", "",
                [](In v, In) { return v[0] == 0 ? 1.0 : std::sin(M_PI * v[0]) / (M_PI * v[0]); }),
      step("sign", 1, "torch.sign({x})", "tl.where({x} > 0, 1.0, tl.where({x} < 0, -1.0, 0.0))",
           [](In v, In) { return v[0] > 0   ? 1.0
                                 : v[0] < 0 ? -1.0
                                            : 0.0; }),
      step("floor", 1, "torch.floor({x})", "tl.floor({x})", [](In v, In) { return std::floor(v[0]); }),
      step("ceil", 1, "torch.ceil({x})", "tl.ceil({x})", [](In v, In) { return std::ceil(v[0]); }),
      step("frac_floor", 1, "{x} - torch.floor({x})", "{x} - tl.floor({x})",
           [](In v, In) { return v[0] - std::floor(v[0]); }),
      step("round", 1, "torch.round({x})", "", [](In v, In) { return std::nearbyint(v[0]); }),
      step("gt", 2, "({x} > {y}).to({x}.dtype)", "tl.where({x} > {y}, 1.0, 0.0)",
           [](In v, In) { return v[0] > v[1] ? 1.0 : 0.0; }),
      step("le", 2, "({x} <= {y}).to({x}.dtype)", "tl.where({x} <= {y}, 1.0, 0.0)",
           [](In v, In) { return v[0] <= v[1] ? 1.0 : 0.0; }),
      step("gt_scalar", 1, "({x} > {a}).to({x}.dtype)", "tl.where({x} > {a}, 1.0, 0.0)",
           [](In v, In a) { return v[0] > a[0] ? 1.0 : 0.0; }, {{0.0}, {0.5}, {-0.3}}),
      step("lt_scalar", 1, "({x} < {a}).to({x}.dtype)", "({x} < {a}).to(tl.float32)",
           [](In v, In a) { return v[0] < a[0] ? 1.0 : 0.0; }, {{0.0}, {0.7}, {-0.4}}),
      step("masked_fill", 2, "{x}.masked_fill({y} > {a}, {b})", "tl.where({y} > {a}, {b}, {x})",
           [](In v, In a) { return v[1] > a[0] ? a[1] : v[0]; }, {{0.0, 0.0}, {0.5, -1.0}, {-0.5, 2.0}}),
      step("where_compare", 3, "torch.where({x} > {y}, {x}, {z})", "tl.where({x} > {y}, {x}, {z})",
           [](In v, In) { return v[0] > v[1] ? v[0] : v[2]; }),
      step("heaviside_relu", 2, "{x} * ({y} > 0)", "tl.where({y} > 0, {x}, 0.0)",
           [](In v, In) { return v[1] > 0 ? v[0] : 0.0; }),
      step("remainder", 1, "torch.remainder({x}, {a})", "{x} - {a} * tl.floor({x} / {a})",
           [](In v, In a) { return v[0] - a[0] * std::floor(v[0] / a[0]); }, {{0.5}, {2.0}}),
  };
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    Operator op;
    op.name = std::string("to_") + type;
    op.family = "cast";
    op.work = Work::kPointwise;
    op.build = build_cast;
    op.torch = std::string("{x}.to(torch.") + type + ")";
    // Values travel through a kernel as float32; what was rounded to half stays so.
    op.triton = op.name == "to_float32" ? "{x}" : std::string("{x}.to(tl.") + type + ").to(tl.float32)";
    // Back to half precision can only follow a cast to float32, so it is tried often.
    op.weight = op.name == "to_float32" ? 6 : 40;
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace tritonrl::graphs
