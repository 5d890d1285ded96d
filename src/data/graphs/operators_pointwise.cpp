// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: those of element_ops.cpp, and those that only whole graphs use.
#include <algorithm>
#include <cmath>

#include "data/graphs/draft.h"

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

double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

}  // namespace

std::vector<Operator> pointwise_operators() {
  using enum Domain;
  std::vector<Operator> ops;
  for (const ElementOp& from : element_ops()) {
    Operator op = pointwise(from.name.c_str(), from.arity, from.torch.c_str(), from.triton.c_str(), from.value,
                            from.domain, from.attributes);
    op.commutative = from.commutative;
    op.jumps = from.jumps;
    op.weight = from.core ? 4 : 3;
    ops.push_back(std::move(op));
  }
  std::vector<Operator> more = {
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
  ops.insert(ops.end(), more.begin(), more.end());
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
