// SPDX-License-Identifier: Apache-2.0
// Named fusions, and the steps that draws are made of: inputs by what they stand for, operators by name.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/synth/draft.h"
#include "data/synth/draw.h"

namespace tritonrl::graphs {

const Operator& must(const char* name) {
  const Operator* op = find_operator(name);
  CHECK(op != nullptr) << "no operator " << name;
  return *op;
}

int apply(Draft& draft, const char* name, int x) { return x < 0 ? -1 : must(name).build(draft, must(name), x); }

int volume_input(Draft& d, bool positive) {
  Dim batch = d.symbol(Role::kBatch), channels = d.symbol(Role::kFewChannels), depth = d.symbol(Role::kDepth);
  Dim height = d.symbol(Role::kShortHeight), width = d.symbol(Role::kShortWidth);
  return d.input({batch, channels, depth, height, width}, positive);
}

int signal_input(Draft& d) {
  Dim batch = d.symbol(Role::kBatch), channels = d.symbol(Role::kChannels), time = d.symbol(Role::kTime);
  return d.input({batch, channels, time});
}

int rows_input(Draft& d) { return d.input({d.symbol(Role::kRows), d.symbol(Role::kFeatures)}); }
int tokens_input(Draft& d) {
  if (d.chance(0.4)) return rows_input(d);
  Dim batch = d.symbol(Role::kBatch), time = d.symbol(Role::kTime), features = d.symbol(Role::kFeatures);
  return d.input({batch, time, features});
}
int image_input(Draft& d) {
  Dim batch = d.symbol(Role::kBatch), channels = d.symbol(Role::kChannels);
  Dim height = d.symbol(Role::kHeight), width = d.symbol(Role::kWidth);
  return d.input({batch, channels, height, width});
}
int matmul_of(Draft& d, int x, int y, bool transposed) {
  if (x < 0 || y < 0) return -1;
  Node node;
  node.op = &must("matmul");
  node.operands = {x, y};
  node.ints["transposed"] = transposed;
  node.type = d.type;
  node.shape = d.shape(x);
  size_t rank = node.shape.size();
  Dim inner = node.shape[rank - 1];
  node.shape[rank - 1] = d.shape(y)[transposed ? rank - 2 : rank - 1];
  double squares = 0;
  for (double v : d.values(y).samples) squares += v * v / kSamples;
  auto samples = d.summed(x, inner.full, std::sqrt(squares));
  double bound = 6 * *std::max_element(samples.begin(), samples.end());
  return d.compute(std::move(node), samples, -bound, bound);
}

namespace {

int activation(Draft& d, int x) {
  return apply(d, d.pick<const char*>({"relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "hardswish", "elu"}),
               x);
}

// op(x, y) with chosen operands.
int binary(Draft& d, const char* name, int x, int y) {
  if (x < 0 || y < 0) return -1;
  const Operator& op = must(name);
  Node node;
  node.op = &op;
  node.operands = {x, y};
  node.numbers = d.pick(op.attributes);
  if (!broadcast(d.shape(x), d.shape(y), node.shape)) return -1;
  node.type = d.graph[x].type;
  std::vector<double> samples;
  double low = 0, high = 0;
  for (int j = 0; j < kSamples; ++j) {
    double at[2] = {d.values(x).samples[static_cast<size_t>(j)], d.values(y).samples[static_cast<size_t>(j)]};
    samples.push_back(op.value(at, node.numbers.data()));
    low = std::min(low, 3 * samples.back());
    high = std::max(high, 3 * samples.back());
  }
  return d.compute(std::move(node), samples, low, high);
}

// sqrt(sum(x^2)) of the whole tensor: nearly the same number for every draw, so nothing that a graph may end with.
int whole_norm(Draft& d, int x) {
  if (x < 0) return -1;
  Node node;
  node.op = &must("frobenius_norm");
  node.operands = {x};
  node.type = d.graph[x].type;
  node.ints["keepdim"] = 0;
  for (int i = 0; i < d.rank(x); ++i) node.dims.push_back(i);
  node.call = d.one_of(node.op->forms);
  double squares = 0, count = static_cast<double>(elements(d.shape(x)));
  for (double v : d.values(x).samples) squares += v * v / kSamples;
  const double norm = std::sqrt(squares * count);
  node.values = {std::vector<double>(kSamples, norm), 0.5 * norm, 2 * norm, false};
  return d.graph.add(std::move(node));
}

int scaled(Draft& d, int x, double factor) {
  if (x < 0) return -1;
  const Operator& op = must("mul_scalar");
  Node node;
  node.op = &op;
  node.operands = {x};
  node.numbers = {factor};
  node.shape = d.shape(x);
  node.type = d.graph[x].type;
  auto samples = d.values(x).samples;
  for (double& v : samples) v *= factor;
  return d.compute(std::move(node), samples, factor * d.values(x).low, factor * d.values(x).high);
}

int softmax_last(Draft& d, int x) {
  if (x < 0) return -1;
  const Operator& op = must("softmax");
  Node node;
  node.op = &op;
  node.operands = {x};
  node.dims = {d.rank(x) - 1};
  node.shape = d.shape(x);
  node.type = d.graph[x].type;
  auto samples = op.row(d.values(x).samples, nullptr);
  double more = static_cast<double>(kSamples) / static_cast<double>(node.shape.back().full);
  for (double& v : samples) v *= more;
  return d.compute(std::move(node), samples, 0, 1);
}

int attention(Draft& d) {
  Dim batch = d.symbol(Role::kBatch), time = d.symbol(Role::kTime), width = d.symbol(Role::kHeadDim);
  Shape shape = {batch, time, width};
  if (d.chance(0.4)) shape.insert(shape.begin() + 1, d.symbol(Role::kHeads));
  int q = d.input(shape), k = d.input(shape), v = d.input(shape);
  int scores = scaled(d, matmul_of(d, q, k, true), d.pick<double>({0.125, 0.25, 0.1}));
  return matmul_of(d, softmax_last(d, scores), v, false);
}

int swiglu(Draft& d) {
  int x = tokens_input(d);
  int first = apply(d, "linear", x);
  if (first < 0) return -1;
  Node second = d.graph[first];  // Another projection to the same width.
  second.member = d.member(d.chance(0.5) ? "gate" : "up");
  second.operands = {x, d.parameter({second.shape.back(), d.shape(x).back()}, "", second.member + ".weight")};
  if (second.ints["bias"]) second.operands.push_back(d.parameter({second.shape.back()}, "", second.member + ".bias"));
  auto samples = d.shuffled(first);
  int other = d.compute(second, samples, d.values(first).low, d.values(first).high);
  return binary(d, "mul", apply(d, d.chance(0.7) ? "silu" : "gelu", first), other);
}

}  // namespace

int gated(Draft& d, int x) {
  return binary(d, "mul", x,
                apply(d, d.pick<const char*>({"sigmoid", "tanh", "hardswish", "softplus", "hardsigmoid", "relu"}), x));
}

const std::vector<Fusion>& fusions() {
  static const std::vector<Fusion> all = {
      {"conv_bn_relu",
       [](Draft& d) { return apply(d, "relu", apply(d, "batch_norm", apply(d, "conv2d", image_input(d)))); }},
      {"depthwise_conv_bn_relu6",
       [](Draft& d) {
         return apply(d, "relu6", apply(d, "batch_norm", apply(d, "depthwise_conv2d", image_input(d))));
       }},
      {"conv_activation", [](Draft& d) { return activation(d, apply(d, "conv2d", image_input(d))); }},
      {"linear_activation", [](Draft& d) { return activation(d, apply(d, "linear", tokens_input(d))); }},
      {"matmul_bias_activation",
       [](Draft& d) {
         int product = apply(d, "matmul", rows_input(d));
         if (product < 0) return -1;
         return activation(d, binary(d, "add", product, d.input({d.shape(product).back()})));
       }},
      {"layer_norm_gelu",
       [](Draft& d) {
         return apply(d, d.chance(0.5) ? "gelu" : "gelu_tanh", apply(d, "layer_norm", tokens_input(d)));
       }},
      {"rms_norm_silu", [](Draft& d) { return apply(d, "silu", apply(d, "rms_norm", tokens_input(d))); }},
      {"residual_layer_norm",
       [](Draft& d) {
         int x = tokens_input(d);
         return apply(d, d.chance(0.6) ? "layer_norm" : "rms_norm", binary(d, "add", x, d.input(d.shape(x))));
       }},
      {"attention", attention},
      {"swiglu", swiglu},
      {"mlp", [](Draft& d) { return apply(d, "linear", activation(d, apply(d, "linear", tokens_input(d)))); }},
      {"linear_softmax", [](Draft& d) { return softmax_last(d, apply(d, "linear", rows_input(d))); }},
      {"linear_cross_entropy", [](Draft& d) { return apply(d, "cross_entropy", apply(d, "linear", rows_input(d))); }},
      {"conv_pool",
       [](Draft& d) {
         return apply(d, d.chance(0.5) ? "max_pool2d" : "avg_pool2d",
                      apply(d, "relu", apply(d, "conv2d", image_input(d))));
       }},
      {"group_norm_silu", [](Draft& d) { return apply(d, "silu", apply(d, "group_norm", image_input(d))); }},
      {"masked_softmax",
       [](Draft& d) {
         int x = tokens_input(d);
         return softmax_last(d, binary(d, "add", scaled(d, x, d.pick<double>({0.5, 0.25})), d.input(d.shape(x))));
       }},
      {"conv_transpose_activation",
       [](Draft& d) {
         bool flat = d.chance(0.5);
         return activation(
             d, apply(d, flat ? "conv_transpose2d" : "conv_transpose3d", flat ? image_input(d) : volume_input(d)));
       }},
      {"conv3d_pool",
       [](Draft& d) {
         return apply(d, d.chance(0.5) ? "max_pool3d" : "adaptive_avg_pool3d",
                      activation(d, apply(d, "conv3d", volume_input(d))));
       }},
      {"conv_norm_activation",
       [](Draft& d) {
         int x = d.chance(0.5) ? volume_input(d) : image_input(d);
         bool volume = d.rank(x) == 5;
         const char* conv =
             d.chance(0.5) ? (volume ? "conv3d" : "conv2d") : (volume ? "conv_transpose3d" : "conv_transpose2d");
         const char* norm = d.pick<const char*>({"batch_norm", "instance_norm", "group_norm"});
         return activation(d, apply(d, norm, apply(d, conv, x)));
       }},
      {"triangular_product",
       [](Draft& d) {
         Dim side = d.symbol(Role::kFeatures);
         const char* half = d.chance(0.5) ? "tril" : "triu";
         int x = apply(d, half, d.input({side, side})), y = apply(d, half, d.input({side, side}));
         return x < 0 || y < 0 ? -1 : apply(d, half, matmul_of(d, x, y, false));
       }},
      {"bias_dropout_residual",
       [](Draft& d) {
         int x = tokens_input(d), bias = d.input({d.shape(x).back()});
         return binary(d, "add", activation(d, binary(d, "add", x, bias)), d.input(d.shape(x)));
       }},
      {"half_of_product",
       [](Draft& d) {
         Dim side = d.symbol(Role::kFeatures);
         int product = matmul_of(d, d.input({side, side}), d.input({side, side}), false);
         return apply(d, d.chance(0.5) ? "tril" : "triu", product);
       },
       true},
      {"divided_by_norm",
       [](Draft& d) {
         int x = d.chance(0.5) ? image_input(d) : rows_input(d);
         return binary(d, "div", x, whole_norm(d, x));
       },
       true},
      {"masked_cumsum",
       [](Draft& d) {
         int x = rows_input(d);
         return apply(d, "cumsum", binary(d, "mul", x, d.input(d.shape(x), true)));
       },
       true},
  };
  return all;
}

const std::vector<std::string>& fusion_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Fusion& fusion : fusions()) out.push_back(fusion.name);
    return out;
  }();
  return names;
}

}  // namespace tritonrl::graphs
