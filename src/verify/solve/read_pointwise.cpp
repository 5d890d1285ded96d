// SPDX-License-Identifier: Apache-2.0
// Rules of operations on single elements; and which family reads what.
#include <cmath>
#include <functional>

#include "base/text.h"
#include "verify/solve/graph_reader.h"

namespace tritonrl {

using graphs::Node;

namespace {

using Reader = GraphReader;

void pointwise(Reader& r, const std::string& op, std::vector<int> operands, std::vector<double> numbers = {}) {
  r.result_is(r.pointwise(op, std::move(operands), std::move(numbers)));
}

// x times a power of a size, for a number that follows the sizes; nothing where none is found.
bool by_size(Reader& r, const std::string& op, size_t at) {
  auto sizes = r.sizes_of(at);
  if (!sizes || (op != "mul" && op != "div")) return false;
  Node node = r.compute("scale", {r.tensor(0)}, {op == "mul" ? 1.0 : -1.0});
  node.module_dims = {r.dim(*sizes)};
  r.result(std::move(node));
  return true;
}

// add, sub, mul, div of two tensors, or of a tensor and a number on either side.
void arithmetic(Reader& r, const std::string& op) {
  r.require(r.text(3, "", "rounding_mode").empty(), "a division that rounds");
  bool sum = op == "add" || op == "sub";
  double alpha = sum ? r.number(9, 1, "alpha") : 1;
  if (r.has(0) && r.has(1)) {
    int x = r.tensor(0), y = r.tensor(1);
    if (alpha != 1) return pointwise(r, "add_alpha", {x, y}, {op == "sub" ? -alpha : alpha});
    return pointwise(r, op, {x, y});
  }
  r.require(r.has(0) && alpha == 1, "a number where a tensor is expected");
  try {
    double value = r.number(1, 0);
    pointwise(r, op + "_scalar", {r.tensor(0)}, {value});
  } catch (const Unfit&) {
    if (!by_size(r, op, 1)) throw;
  }
}

void power(Reader& r) {
  double exponent = r.number(1, 1);
  int x = r.tensor(0);
  if (exponent == 2) return pointwise(r, "square", {x});
  if (exponent == 3) return pointwise(r, "cube", {x});
  if (exponent == 0.5) return pointwise(r, "sqrt", {x});
  if (exponent == -0.5) return pointwise(r, "rsqrt", {x});
  if (exponent == -1) return pointwise(r, "reciprocal", {x});
  if (exponent == std::round(exponent) && exponent > 3 && exponent <= 8) {
    Node node = r.compute("pow_integer", {x});
    node.ints["exponent"] = static_cast<int64_t>(exponent);
    return r.result(std::move(node));
  }
  pointwise(r, "pow_scalar", {x}, {exponent});
}

void clamp(Reader& r) {
  bool low = r.argument(1, "min") != nullptr, high = r.argument(2, "max") != nullptr;
  int x = r.tensor(0);
  r.require(!r.is_tensor(r.argument(1, "min")) && !r.is_tensor(r.argument(2, "max")), "bounds that are tensors");
  if (low && high) return pointwise(r, "clamp", {x}, {r.number(1, 0, "min"), r.number(2, 0, "max")});
  r.require(low || high, "no bounds");
  pointwise(r, low ? "clamp_min" : "clamp_max", {x}, {low ? r.number(1, 0, "min") : r.number(2, 0, "max")});
}

void softplus(Reader& r) {
  double beta = r.number(1, 1), threshold = r.number(2, 20);
  r.require(threshold == 20, "another threshold");
  if (beta == 1) return pointwise(r, "softplus", {r.tensor(0)});
  pointwise(r, "softplus_beta", {r.tensor(0)}, {beta});
}

void elu(Reader& r) {
  r.require(r.number(2, 1) == 1 && r.number(3, 1) == 1, "another scale");
  pointwise(r, "elu", {r.tensor(0)}, {r.number(1, 1)});
}

// Numbers of the operation's own arguments, with what they are where nothing is said.
using ReadRule = std::function<void(Reader&)>;
ReadRule with(const std::string& op, std::vector<double> usual) {
  return [op, usual](Reader& r) {
    std::vector<double> numbers;
    for (size_t i = 0; i < usual.size(); ++i) numbers.push_back(r.number(1 + i, usual[i]));
    pointwise(r, op, {r.tensor(0)}, numbers);
  };
}
ReadRule of_two(const std::string& op) {
  return [op](Reader& r) { pointwise(r, op, {r.tensor(0), r.tensor(1)}); };
}

// The same number everywhere.
ReadRule filled(double value, size_t at = 99) {
  return [=](Reader& r) { r.result(r.compute("fill", {}, {r.number(at, value)})); };
}

void cast(Reader& r) {
  int x = r.tensor(0);
  const TraceArg* dtype = r.argument(9, "dtype");
  if (dtype == nullptr) return r.result_is(x);
  graphs::Type before = r.graph()[x].type;
  std::string to = to_string(static_cast<Dtype>(dtype->number));
  if (to == short_name(before)) return r.result_is(x);
  r.require(to == "float32" || to == "float16" || to == "bfloat16", "a cast to " + to);
  r.result(r.compute("to_" + to, {x}));
}

void masked_fill(Reader& r) {
  r.require(!r.has(2), "the value is a tensor");
  pointwise(r, "masked_fill_mask", {r.tensor(0), r.tensor(1)}, {r.number(2, 0)});
}

void prelu(Reader& r) {
  int x = r.tensor(0);
  graphs::Shape slopes(static_cast<size_t>(std::max(1, r.rank(x) - 1)));
  if (r.operand_sizes(1, 0)[0] != 1) slopes[0] = r.shape(x).at(1);
  r.result(r.compute("prelu", {x, r.weight(1, slopes)}));
}

void batch_norm(Reader& r) {
  r.require(!r.truth(5, false), "in training");
  int x = r.tensor(0);
  r.require(r.rank(x) >= 2 && r.has(3) && r.has(4) && r.has(1) == r.has(2), "without running statistics");
  graphs::Shape viewed(static_cast<size_t>(r.rank(x)) - 1);
  viewed[0] = r.shape(x)[1];
  std::vector<int> operands = {x, r.weight(3, viewed), r.weight(4, viewed)};
  for (size_t at : {1, 2}) {
    if (r.has(at)) operands.push_back(r.weight(at, viewed));
  }
  r.result(r.compute(r.has(1) ? "batch_norm" : "batch_norm_plain", operands, {r.number(7, 1e-5)}));
}

const std::map<std::string, ReadRule>& pointwise_rules() {
  static const std::map<std::string, ReadRule> all = [] {
    std::map<std::string, ReadRule> out = {
        {"pow.Tensor_Scalar", power},
        {"clamp", clamp},
        {"softplus", softplus},
        {"elu", elu},
        {"_to_copy", cast},
        {"prelu", prelu},
        {"batch_norm", batch_norm},
        {"masked_fill.Scalar", masked_fill},
        {"gelu",
         [](Reader& r) {
           pointwise(r, r.text(1, "none", "approximate") == "tanh" ? "gelu_tanh" : "gelu", {r.tensor(0)});
         }},
        {"rsub.Scalar",
         [](Reader& r) {
           r.require(r.number(2, 1) == 1, "another alpha");
           pointwise(r, "rsub_scalar", {r.tensor(0)}, {r.number(1, 0)});
         }},
        {"where.self",
         [](Reader& r) {
           pointwise(r, "where_mask", {r.tensor(0), r.tensor(1), r.tensor(2)});
         }},
        {"lerp.Scalar",
         [](Reader& r) {
           pointwise(r, "lerp", {r.tensor(0), r.tensor(1)}, {r.number(2, 0)});
         }},
        {"addcmul",
         [](Reader& r) {
           pointwise(r, "addcmul", {r.tensor(0), r.tensor(1), r.tensor(2)}, {r.number(9, 1, "value")});
         }},
        {"addcdiv",
         [](Reader& r) {
           pointwise(r, "addcdiv", {r.tensor(0), r.tensor(1), r.tensor(2)}, {r.number(9, 1, "value")});
         }},
        {"leaky_relu", with("leaky_relu", {0.01})},
        {"celu", with("celu", {1})},
        {"hardtanh", with("hardtanh", {-1, 1})},
        {"softshrink", with("softshrink", {0.5})},
        {"hardshrink", with("hardshrink", {0.5})},
        {"threshold", with("threshold", {0, 0})},
        {"clamp_min", with("clamp_min", {0})},
        {"clamp_max", with("clamp_max", {0})},
        {"remainder.Scalar", with("remainder", {1})},
        {"eq.Scalar", with("eq_scalar", {0})},
        {"ne.Scalar", with("ne_scalar", {0})},
        {"gt.Scalar", with("gt_scalar", {0})},
        {"ge.Scalar", with("ge_scalar", {0})},
        {"lt.Scalar", with("lt_scalar", {0})},
        {"le.Scalar", with("le_scalar", {0})},
        {"maximum", of_two("maximum")},
        {"minimum", of_two("minimum")},
        {"max.other", of_two("maximum")},
        {"min.other", of_two("minimum")},
        {"hypot", of_two("hypot")},
        {"logaddexp", of_two("logaddexp")},
        {"xlogy.Tensor", of_two("xlogy")},
        {"eq.Tensor", of_two("eq")},
        {"gt.Tensor", of_two("gt")},
        {"ge.Tensor", of_two("ge")},
        {"lt.Tensor", of_two("lt")},
        {"le.Tensor", of_two("le")},
        {"zeros", filled(0)},
        {"zeros_like", filled(0)},
        {"ones", filled(1)},
        {"ones_like", filled(1)},
        {"full", filled(0, 1)},
        {"full_like", filled(0, 1)},
        {"scalar_tensor", filled(0, 0)},
    };
    for (const char* op : {"add", "sub", "mul", "div"}) {
      ReadRule rule = [op](Reader& r) { arithmetic(r, op); };
      for (const char* end : {".Tensor", ".Scalar"}) out[cat(op, end)] = rule;
    }
    out["multiply.Tensor"] = out["mul.Tensor"];
    out["subtract.Tensor"] = out["sub.Tensor"];
    out["divide.Tensor"] = out["true_divide.Tensor"] = out["div.Tensor"];
    for (const char* op : {"relu",       "sigmoid", "tanh", "silu",  "exp",   "abs",   "neg",         "square",
                           "sqrt",       "mish",    "sin",  "cos",   "erf",   "relu6", "hardswish",   "selu",
                           "exp2",       "expm1",   "log",  "log1p", "rsqrt", "log2",  "hardsigmoid", "log10",
                           "reciprocal", "sinh",    "cosh", "erfc",  "sign",  "floor", "ceil"}) {
      out[op] = with(op, {});
    }
    out["log_sigmoid"] = with("logsigmoid", {});
    return out;
  }();
  return all;
}

}  // namespace

bool read_pointwise(GraphReader& reader) {
  auto it = pointwise_rules().find(reader.name());
  if (it == pointwise_rules().end()) return false;
  it->second(reader);
  return true;
}

void read_call(GraphReader& reader) {
  if (read_pointwise(reader) || read_rows(reader) || read_products(reader) || read_movement(reader)) return;
  throw Unfit{"operator", "aten." + reader.name()};
}

}  // namespace tritonrl
