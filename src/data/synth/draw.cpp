// SPDX-License-Identifier: Apache-2.0
#include "data/synth/draw.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "data/synth/draft.h"
#include "data/synth/launch_plan.h"

namespace tritonrl::graphs {

namespace {

constexpr int kOperatorTries = 24;  // Operators tried for one place.

// Where graphs begin. Shapes of size 1 and single-element dimensions are in the mix.
int first_input(Draft& draft) {
  if (draft.long_rows && draft.chance(0.05)) {
    Dim rows = draft.symbol(Role::kFewRows);
    return draft.input({rows, draft.symbol(Role::kLongColumns)}, draft.chance(0.15));
  }
  double draw = draft.plain ? 0.2 : draft.rng.uniform();
  bool positive = draft.chance(draft.plain ? 0.06 : 0.15);
  if (draw < 0.12) return draft.input({draft.symbol(Role::kLong)}, positive);
  if (draw < 0.45) {
    Dim rows = draft.symbol(Role::kRows);
    if (!draft.plain && draft.chance(0.06)) return draft.input({rows, rows}, positive);
    return draft.input({rows, draft.symbol(Role::kColumns)}, positive);
  }
  if (draw < 0.70) {
    Dim batch = draft.symbol(Role::kBatch), time = draft.symbol(Role::kTime), features = draft.symbol(Role::kFeatures);
    return draft.input(draft.chance(0.1) ? Shape{batch, Dim(), features} : Shape{batch, time, features}, positive);
  }
  if (draw < 0.88) {
    Dim batch = draft.symbol(Role::kBatch), channels = draft.symbol(Role::kChannels);
    Dim height = draft.symbol(Role::kHeight), width = draft.symbol(Role::kWidth);
    return draft.input({draft.chance(0.1) ? Dim() : batch, channels, height, width}, positive);
  }
  if (draw < 0.96) return volume_input(draft, positive);
  Dim batch = draft.symbol(Role::kBatch), time = draft.symbol(Role::kTime), classes = draft.symbol(Role::kClasses);
  Dim features = draft.symbol(Role::kFeatures);
  int tokens = draft.index_input({batch, time}, classes);
  Node node;
  node.op = &must("embedding");
  node.member = draft.member("embedding");
  node.module =
      cat("nn.Embedding({0}, {1}", draft.type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(draft.type)), ")");
  node.module_dims = {classes, features};
  node.operands = {tokens, draft.parameter({classes, features}, "", node.member + ".weight")};
  node.shape = {batch, time, features};
  node.type = draft.type;
  auto samples = draft.values(node.operands[1]).samples;
  return draft.compute(std::move(node), samples, -5, 5, false);
}

// The operator before says which may follow: casts and movement in a row are noise.
bool may_follow(Draft& draft, const Operator& op, int x) {
  const Operator* before = draft.graph[x].op;
  if (draft.plain) {
    bool needs_positive = op.domain == Domain::kNotNegative || op.domain == Domain::kPositive;
    if (before != nullptr && op.family == "matmul") return false;
    // Inputs are positive where that is needed and nowhere else, or one computation would be two graphs.
    if (before == nullptr && (draft.values(x).low > 0) != needs_positive) return false;
  }
  if (before == nullptr) return true;
  // What sums to 1 sums to 1.
  if (draft.long_rows && before->family == "softmax" && (op.name == "sum" || op.name == "mean")) return false;
  bool again = draft.layered && op.family == "elementwise" && op.arity == 1 && draft.rng.below(3) == 0;
  if (before->name == op.name && op.family != "matmul" && op.family != "conv" && !again) return false;
  return !(before->family == op.family && (op.family == "movement" || op.family == "cast" || op.family == "norm" ||
                                           op.family == "softmax" || op.family == "loss" || op.family == "scan"));
}

struct Weighted {
  const Operator* op;
  int64_t weight;
};

int one_more(Draft& draft, const std::vector<Weighted>& from, int x) {
  int64_t total = 0;
  for (const Weighted& each : from) total += each.weight;
  if (total == 0) return -1;
  for (int attempt = 0; attempt < kOperatorTries; ++attempt) {
    int64_t at = draft.rng.below(total);
    auto chosen = from.begin();
    while ((at -= chosen->weight) >= 0) ++chosen;
    if (!may_follow(draft, *chosen->op, x)) continue;
    Draft kept = draft;
    int node = chosen->op->build(draft, *chosen->op, x);
    if (node >= 0) return node;
    // What the attempt added (inputs, symbols) goes; the random stream moves on.
    draft.graph = std::move(kept.graph);
    draft.forget_since(kept);
  }
  return -1;
}

// ------------------------------------------------------------------------------------------- a layer and what follows
// it

int first_layer(Draft& d) {
  static const std::vector<std::string> kLayers = {
      "linear",           "linear",           "linear",           "linear",           "linear",
      "linear",           "linear",           "linear",           "linear",           "conv2d",
      "conv2d",           "conv2d",           "conv2d",           "conv3d",           "conv3d",
      "conv3d",           "conv_transpose2d", "conv_transpose2d", "conv_transpose2d", "conv_transpose3d",
      "conv_transpose3d", "conv_transpose3d", "conv_transpose3d", "conv1d",           "conv_transpose1d",
      "depthwise_conv2d"};
  const std::string& layer = d.pick(kLayers);
  if (layer == "linear" && d.chance(0.12)) {  // A product with a weight of its own.
    int x = rows_input(d);
    Dim columns = d.symbol(Role::kFeatures);
    bool transposed = d.chance(0.6);
    Shape shape = transposed ? Shape{columns, d.shape(x)[1]} : Shape{d.shape(x)[1], columns};
    return matmul_of(d, x, d.parameter(shape, "torch.randn({shape})", d.member(d.one_of({"weight", "weight", "w"}))),
                     transposed);
  }
  if (layer == "linear") return apply(d, "linear", d.chance(0.85) ? rows_input(d) : tokens_input(d));
  int spatial = spatial_dims(must(layer.c_str()));
  return apply(d, layer.c_str(), spatial == 1 ? signal_input(d) : spatial == 2 ? image_input(d) : volume_input(d));
}

// Now and then what people write as a whole: a norm behind a projection, a value times an activation of itself. -1 =
// not this time.
int idiom(Draft& d, int x, int64_t room) {
  const bool norm = d.graph[x].op->name == "linear" && d.rank(x) == 2 && d.chance(0.25);
  if (!norm && (room < 2 || !d.chance(0.05))) return -1;
  const Draft before = d;
  const int made = norm ? apply(d, d.chance(0.6) ? "group_norm" : "batch_norm", x) : gated(d, x);
  if (made < 0) {
    d.graph = before.graph;
    d.forget_since(before);
  }
  return made;
}

bool takes_a_long_row(Draft& d, const Operator& op) {
  bool rows = op.work == Work::kRow && op.arity == 1 &&
              (op.family == "reduction" || op.family == "softmax" || op.family == "scan" || op.family == "norm");
  return rows && takes_long_rows(op) && d.long_rows && d.chance(0.3);
}

// An input that a single operator takes. Norms, pools and convolutions over space are written for images and volumes
// more often than for rows.
int input_for(Draft& d, const Operator& op) {
  const bool positive = op.domain == Domain::kNotNegative || op.domain == Domain::kPositive;
  if (takes_a_long_row(d, op)) return d.input({d.symbol(Role::kFewRows), d.symbol(Role::kLongColumns)}, positive);
  const bool window = op.family == "conv" || op.family == "pool";
  const bool spatial = op.name.rfind("spatial_", 0) == 0 || op.name == "batch_norm" || op.name == "instance_norm" ||
                       op.name == "group_norm";
  int dims = window ? spatial_dims(op) : spatial ? (d.chance(0.75) ? 2 : 3) : 0;
  if (dims == 1) return signal_input(d);
  if (dims == 2) return image_input(d);
  if (dims == 3) return volume_input(d);
  if (op.family == "matmul" || op.family == "loss") {
    bool batched = op.name == "bmm" || op.name.find("batched") == 0 || op.name == "shared_matmul" ||
                   op.name == "scaled_dot_product_attention";
    if (!batched && op.name != "linear" && d.chance(0.2)) {
      Dim side = d.symbol(Role::kFeatures);
      return d.input({side, side});
    }
    if (!batched) return op.name == "linear" ? tokens_input(d) : rows_input(d);
    Dim batch = d.symbol(Role::kBatch), time = d.symbol(Role::kTime), features = d.symbol(Role::kFeatures);
    if (op.name == "bmm" || d.chance(0.6)) return d.input({batch, time, features});
    return d.input({batch, d.symbol(Role::kHeads), time, features});
  }
  return positive ? d.input({d.symbol(Role::kRows), d.symbol(Role::kColumns)}, true) : -1;
}

// How often an operator is the only one of a graph: what networks spend their time in comes more often than its number
// of names.
int64_t single_weight(const Operator& op) {
  static const std::map<std::string, int64_t> kFamilies = {
      {"conv", 36}, {"matmul", 26},   {"pool", 14}, {"norm", 18},    {"scan", 12},  {"softmax", 16},
      {"loss", 9},  {"reduction", 9}, {"cast", 1},  {"movement", 2}, {"compare", 2}};
  static const std::map<std::string, int64_t> kNames = {
      {"relu", 8},        {"sigmoid", 8},    {"tanh", 8},      {"gelu", 10},        {"silu", 8},       {"elu", 8},
      {"selu", 8},        {"softplus", 8},   {"softsign", 8},  {"hardtanh", 8},     {"leaky_relu", 8}, {"gelu_tanh", 8},
      {"hardsigmoid", 8}, {"mul_scalar", 6}, {"embedding", 0}, {"logcumsumexp", 0}, {"sort", 0}};
  if (op.weight == 0) return 0;
  if (auto it = kNames.find(op.name); it != kNames.end()) return it->second;
  auto it = kFamilies.find(op.family);
  return it == kFamilies.end() ? 3 : it->second;
}

// One operator by its weight, on inputs that it takes.
int single(Draft& draft, const OperatorSet& from) {
  int64_t total = 0;
  for (const Operator* op : from) total += single_weight(*op);
  if (total == 0) return -1;
  int64_t at = draft.rng.below(total);
  auto chosen = from.begin();
  while ((at -= single_weight(**chosen)) >= 0) ++chosen;
  const Draft empty = draft;
  for (int attempt = 0; attempt < kOperatorTries; ++attempt) {
    int x = input_for(draft, **chosen);
    if (x < 0) x = first_input(draft);
    int node = x < 0 ? -1 : (*chosen)->build(draft, **chosen, x);
    if (node >= 0 && draft.graph.compute_nodes() == 1) return node;
    draft.graph = empty.graph;
    draft.forget_since(empty);
  }
  return -1;
}

// What follows a layer, and how often beside the others.
std::vector<Weighted> followers() {
  static const std::vector<std::pair<const char*, int64_t>> kWeights = {{"relu", 6},
                                                                        {"sigmoid", 6},
                                                                        {"tanh", 6},
                                                                        {"silu", 6},
                                                                        {"gelu", 6},
                                                                        {"mish", 4},
                                                                        {"hardswish", 4},
                                                                        {"leaky_relu", 5},
                                                                        {"hardtanh", 4},
                                                                        {"elu", 2},
                                                                        {"softplus", 2},
                                                                        {"relu6", 1},
                                                                        {"clamp", 7},
                                                                        {"clamp_min", 4},
                                                                        {"clamp_max", 2},
                                                                        {"add_scalar", 5},
                                                                        {"sub_scalar", 6},
                                                                        {"mul_scalar", 10},
                                                                        {"div_scalar", 8},
                                                                        {"add", 18},
                                                                        {"mul", 9},
                                                                        {"sub", 6},
                                                                        {"maximum", 1},
                                                                        {"minimum", 2},
                                                                        {"batch_norm", 8},
                                                                        {"group_norm", 10},
                                                                        {"instance_norm", 5},
                                                                        {"layer_norm", 4},
                                                                        {"max_pool1d", 5},
                                                                        {"max_pool2d", 12},
                                                                        {"max_pool3d", 13},
                                                                        {"avg_pool1d", 5},
                                                                        {"avg_pool2d", 10},
                                                                        {"avg_pool3d", 10},
                                                                        {"adaptive_avg_pool2d", 6},
                                                                        {"adaptive_avg_pool3d", 7},
                                                                        {"spatial_mean", 4},
                                                                        {"spatial_sum", 1},
                                                                        {"sum", 7},
                                                                        {"mean", 6},
                                                                        {"max_dim", 4},
                                                                        {"min_dim", 5},
                                                                        {"amax", 1},
                                                                        {"logsumexp", 8},
                                                                        {"softmax", 7},
                                                                        {"log_softmax", 1},
                                                                        {"dropout", 2},
                                                                        {"linear", 3},
                                                                        {"double", 2},
                                                                        {"square", 1},
                                                                        {"abs", 1},
                                                                        {"exp", 1}};
  std::vector<Weighted> out;
  for (const auto& [name, weight] : kWeights) out.push_back({&must(name), weight});
  return out;
}

}  // namespace

std::optional<TensorGraph> draw_graph(const DrawConfig& config, Rng rng) {
  static const OperatorSet all = select_operators({"all"});
  const OperatorSet& from = config.operators ? *config.operators : all;
  Draft draft(config.type, config.gpu_sizes, config.plain, rng);
  draft.long_rows = config.long_rows;
  int current = -1;
  std::vector<Weighted> next;
  if (!config.layer) {
    for (const Operator* op : from) next.push_back({op, op->weight});
  }
  if (config.layer) {
    static const std::vector<Weighted> kFollowers = followers();
    next = kFollowers;
    draft.layered = true;
    current = first_layer(draft);
    if (current < 0) return std::nullopt;
  } else if (config.fusion) {
    std::vector<Fusion> from_these = fusions();
    std::erase_if(from_these, [&](const Fusion& each) { return each.of_long_rows && !config.long_rows; });
    const Fusion fusion = draft.pick(from_these);
    current = fusion.build(draft);
    if (current < 0) return std::nullopt;
    if (draft.graph.compute_nodes() >= config.nodes) draft.graph.title = fusion.name;
  } else if (config.by_weight && config.nodes == 1) {
    current = single(draft, from);
    if (current < 0) return std::nullopt;
  } else {
    current = first_input(draft);
    if (current < 0) return std::nullopt;
  }
  while (draft.graph.compute_nodes() < config.nodes) {
    int made = draft.layered ? idiom(draft, current, config.nodes - draft.graph.compute_nodes()) : -1;
    current = made >= 0 ? made : one_more(draft, next, current);
    if (current < 0 || draft.rank(current) > 5 || (config.plain && draft.rank(current) == 0)) return std::nullopt;
    const Node& node = draft.graph[current];
    bool last = draft.graph.compute_nodes() >= config.nodes;
    if (node.type == Type::kInt64 && !last) return std::nullopt;
  }
  if (draft.graph.compute_nodes() > config.nodes && !config.fusion) return std::nullopt;
  draft.graph.outputs = {current};
  // Now and then a value on the way is an output too.
  if (!config.plain && draft.graph.compute_nodes() >= 2 && draft.chance(0.08)) {
    std::vector<int> earlier;
    for (size_t i = 0; i + 1 < draft.graph.nodes.size(); ++i) {
      const Node& node = draft.graph.nodes[i];
      if (node.kind == Node::Kind::kCompute && static_cast<int>(i) != current && node.op->work != Work::kMove) {
        earlier.push_back(static_cast<int>(i));
      }
    }
    if (!earlier.empty()) draft.graph.outputs.push_back(draft.pick(earlier));
  }
  // Every node must reach an output, and something must be computed.
  std::set<int> used(draft.graph.outputs.begin(), draft.graph.outputs.end());
  for (int i = static_cast<int>(draft.graph.nodes.size()) - 1; i >= 0; --i) {
    if (!used.count(i)) return std::nullopt;
    for (int operand : draft.graph[i].operands) used.insert(operand);
  }
  std::set<std::string> named;
  for (const Node& node : draft.graph.nodes) {
    for (const Shape* shape : {&node.shape, &node.module_dims}) {
      for (const Dim& dim : *shape) {
        for (const auto& [name, symbol] : draft.graph.symbols) {
          if (dim.text.find(name) != std::string::npos) named.insert(name);
        }
      }
    }
  }
  std::erase_if(draft.graph.symbols, [&](const auto& entry) { return !named.count(entry.first); });
  // A movement alone is a copy: fine as a task now and then, but never when the result is a view of an input.
  const Node& end = draft.graph[current];
  for (const char* view : {"unsqueeze", "squeeze", "flatten"}) {
    if (end.op->name == view) return std::nullopt;
  }
  return draft.graph;
}

}  // namespace tritonrl::graphs
