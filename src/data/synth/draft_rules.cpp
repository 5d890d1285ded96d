// SPDX-License-Identifier: Apache-2.0
// Shape rules of pointwise, row and loss operators.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

constexpr int64_t kRowSamples = 512;  // Longest row that is simulated.

bool in_domain(const Operator& op, const std::vector<const Values*>& operands) {
  const Values& first = *operands[0];
  switch (op.domain) {
    case Domain::kAny:
      return true;
    case Domain::kSmall:
      return first.high <= 6;
    case Domain::kNotNegative:
      return first.low >= 0;
    case Domain::kPositive:
      return first.low >= 0.1;
    case Domain::kDivisor:
      return operands.back()->low >= 0.1;
  }
  return false;
}

// The interval of a function over the box of its operands' intervals, from a grid that includes corners and middles.
void interval(const Operator& op, const std::vector<const Values*>& operands, const std::vector<double>& numbers,
              double& low, double& high) {
  int steps = operands.size() == 1 ? 128 : operands.size() == 2 ? 16 : 8;
  low = 1e300;
  high = -1e300;
  size_t total = 1;
  for (size_t i = 0; i < operands.size(); ++i) total *= static_cast<size_t>(steps + 1);
  for (size_t point = 0; point < total; ++point) {
    double at[3] = {0, 0, 0};
    size_t rest = point;
    for (size_t i = 0; i < operands.size(); ++i) {
      double share = static_cast<double>(rest % static_cast<size_t>(steps + 1)) / steps;
      at[i] = operands[i]->low + share * (operands[i]->high - operands[i]->low);
      rest /= static_cast<size_t>(steps + 1);
    }
    double v = op.value(at, numbers.data());
    low = std::min(low, v);
    high = std::max(high, v);
  }
}

// Values of a pointwise node; false when an operand does not matter or the operator does nothing here.
bool pointwise_values(Draft& draft, const Operator& op, const Node& node, std::vector<double>& samples, double& low,
                      double& high) {
  std::vector<const Values*> operands;
  for (int id : node.operands) operands.push_back(&draft.values(id));
  if (!in_domain(op, operands)) return false;
  if (op.jumps && !std::all_of(operands.begin(), operands.end(), [](const Values* v) { return v->exact; }))
    return false;
  // Far from 0 a small rounding error of the angle is a large one of the result.
  if ((op.name == "sin" || op.name == "cos") &&
      std::max(-operands[0]->low, operands[0]->high) > (is_half(node.type) ? 8 : 40)) {
    return false;
  }
  std::vector<int> matters(operands.size(), 0);
  int changed = 0;
  for (int j = 0; j < kSamples; ++j) {
    double at[3] = {0, 0, 0};
    for (size_t i = 0; i < operands.size(); ++i) at[i] = operands[i]->samples[static_cast<size_t>(j)];
    double v = op.value(at, node.numbers.data());
    samples.push_back(v);
    changed += std::abs(v - at[0]) > 0.02 * (std::abs(at[0]) + 0.1);
    for (size_t i = 0; i < operands.size(); ++i) {
      double kept = at[i];
      at[i] = operands[i]->samples[static_cast<size_t>((j + 101) % kSamples)];
      matters[i] += std::abs(op.value(at, node.numbers.data()) - v) > 0.01 * (std::abs(v) + 0.01);
      at[i] = kept;
    }
  }
  if (changed < kSamples / 20) return false;
  for (int count : matters) {
    if (count < kSamples / 20) return false;
  }
  interval(op, operands, node.numbers, low, high);
  return true;
}

bool ordinary(const Draft& draft, int x) { return draft.is_float(x); }

}  // namespace

int build_pointwise(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x)) return -1;
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  node.operands = {x};
  for (int i = 1; i < op.arity; ++i) {
    bool divisor = op.domain == Domain::kDivisor && i == op.arity - 1;
    int other = draft.other(draft.shape(x), x, divisor);
    if (other < 0) return -1;
    node.operands.push_back(other);
  }
  if (!draft.plain && op.arity == 2 && op.domain == Domain::kAny && draft.chance(0.25) &&
      draft.shape(x) == draft.shape(node.operands[1])) {
    std::swap(node.operands[0], node.operands[1]);
  }
  node.shape = draft.shape(x);
  node.type = draft.graph[x].type;
  std::vector<double> samples;
  double low, high;
  if (!pointwise_values(draft, op, node, samples, low, high)) return -1;
  return draft.compute(std::move(node), samples, low, high);
}

int build_cast(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x)) return -1;
  static const std::map<std::string, Type> kTypes = {
      {"to_float32", Type::kFloat32}, {"to_float16", Type::kFloat16}, {"to_bfloat16", Type::kBfloat16}};
  Type to = kTypes.at(op.name);
  // Only between the draft's own dtype and float32: the config decides which others there are.
  if (to == draft.graph[x].type || (to != draft.type && to != Type::kFloat32)) return -1;
  Node node;
  node.op = &op;
  node.operands = {x};
  node.shape = draft.shape(x);
  node.type = to;
  const Values& v = draft.values(x);
  auto samples = v.samples;
  return draft.compute(std::move(node), samples, v.low, v.high);
}

namespace {

// Samples of a row operator: rows are drawn anew from the operand's samples.
bool row_values(Draft& draft, const Operator& op, const Node& node, int64_t length, std::vector<double>& samples,
                double& low, double& high) {
  const Values& from = draft.values(node.operands[0]);
  std::vector<const Values*> operands = {&from};
  if (!in_domain(op, operands)) return false;
  if (op.jumps && !from.exact) return false;
  int64_t n = std::min(length, kRowSamples);
  if (n < 2) return false;
  Rng own = Rng(81).at(draft.graph.nodes.size());
  double growth = std::pow(static_cast<double>(length) / static_cast<double>(n), op.growth);
  int draws = op.scalar_rows ? kSamples : 8;
  std::vector<double> pooled;
  for (int j = 0; j < draws; ++j) {
    std::vector<double> row;
    for (int64_t i = 0; i < n; ++i) row.push_back(own.pick(from.samples));
    for (double v : op.row(std::move(row), node.numbers.data())) pooled.push_back(v * growth);
  }
  if (op.scalar_rows) {
    samples = pooled;
    if (length > n) {  // Longer rows differ less from each other.
      double average = 0;
      for (double v : samples) average += v / kSamples;
      double shrink = std::sqrt(static_cast<double>(n) / static_cast<double>(length));
      for (double& v : samples) v = average + (v - average) * shrink;
    }
  } else {
    for (int j = 0; j < kSamples; ++j) samples.push_back(own.pick(pooled));
  }
  auto [least, most] = std::minmax_element(pooled.begin(), pooled.end());
  double margin = 0.5 * (*most - *least);
  // Samples alone do not prove a sign: the logarithm or root behind it would meet the one row that has another.
  static const std::set<std::string> kNeverNegative = {"softmax", "softmin", "var", "std", "l1_norm", "l2_norm"};
  bool never_negative = from.low >= 0 || kNeverNegative.count(op.name) > 0;
  low = never_negative ? std::max(0.0, *least * 0.5) : *least - margin - 0.1;
  high = *most + margin;
  return true;
}

Shape without(const Shape& shape, const std::vector<int>& dims, bool keep) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool gone = std::find(dims.begin(), dims.end(), static_cast<int>(i)) != dims.end();
    if (!gone) out.push_back(shape[i]);
    if (gone && keep) out.push_back(Dim());
  }
  return out;
}

int64_t length_of(const Shape& shape, const std::vector<int>& dims) {
  int64_t count = 1;
  for (int dim : dims) count *= shape[static_cast<size_t>(dim)].full;
  return count;
}

}  // namespace

int build_row(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x) || draft.rank(x) == 0) return -1;
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  node.operands = {x};
  int last = draft.rank(x) - 1;
  node.dims = {draft.chance(draft.long_rows ? 0.4 : 0.7) ? last : static_cast<int>(draft.rng.below(last + 1))};
  node.shape = draft.shape(x);
  node.type = draft.graph[x].type;
  int64_t length = length_of(node.shape, node.dims);
  if (length > draft.longest_row(op)) return -1;
  std::vector<double> samples;
  double low, high;
  if (!row_values(draft, op, node, length, samples, low, high)) return -1;
  return draft.compute(std::move(node), samples, low, high);
}

int build_reduce(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x) || draft.rank(x) == 0) return -1;
  int rank = draft.rank(x);
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  node.operands = {x};
  double draw = draft.rng.uniform();
  bool all_dims = op.name == "sum" || op.name == "mean" || op.name == "amax" || op.name == "amin";
  bool spatial = op.name.rfind("spatial_", 0) == 0, picks = op.name == "max_dim" || op.name == "min_dim";
  if ((op.arity == 2 || picks) && rank < 2) return -1;
  if (spatial) {  // All dimensions behind the channels, or behind the batch.
    if (rank < 4) return -1;
    for (int i = draw < 0.75 ? 2 : 1; i < rank; ++i) node.dims.push_back(i);
  } else if (op.arity == 2) {  // cosine_similarity and its kind.
    int other = draft.other(draft.shape(x), x, false, false);
    if (other < 0 || other == x || !(draft.shape(other) == draft.shape(x))) return -1;
    node.operands.push_back(other);
    node.dims = {rank - 1};
  } else if (all_dims && (rank == 1 || draw < 0.15)) {
    for (int i = 0; i < rank; ++i) node.dims.push_back(i);
  } else if (rank >= 3 && draw < 0.4 && (all_dims || op.name == "logsumexp" || op.name == "var")) {
    node.dims = {rank - 2, rank - 1};
  } else {
    node.dims = {draft.chance(draft.long_rows ? 0.35 : 0.65) ? rank - 1 : static_cast<int>(draft.rng.below(rank))};
  }
  bool whole = static_cast<int>(node.dims.size()) == rank;
  bool keep = !whole && op.name != "cosine_similarity" && draft.chance(0.5);
  node.ints["keepdim"] = keep;
  node.shape = without(draft.shape(x), node.dims, keep);
  node.type = op.name == "argmax" || op.name == "argmin" ? Type::kInt64 : draft.graph[x].type;
  if (node.type == Type::kInt64 && is_half(draft.graph[x].type)) return -1;  // Ties.
  int64_t length = length_of(draft.shape(x), node.dims);
  bool simple = op.name == "sum" || op.name == "mean" || op.name == "amax" || op.name == "amin";
  if (length > draft.longest_row(op) && !(whole && simple)) return -1;
  if (op.name == "prod" && length > 64) return -1;  // Longer products of factors near 1 vanish.
  std::vector<double> samples;
  double low, high;
  if (!row_values(draft, op, node, length, samples, low, high)) return -1;
  draft.write(node);
  return draft.compute(std::move(node), samples, low, high);
}

int build_adaptive_pool(Draft& draft, const Operator& op, int x) {
  int spatial = spatial_dims(op);
  if (!draft.usable(x) || draft.rank(x) != spatial + 2) return -1;
  Node node;
  node.op = &op;
  node.operands = {x};
  node.type = draft.type;
  for (int i = 2; i < spatial + 2; ++i) node.dims.push_back(i);
  node.ints["keepdim"] = 1;
  node.shape = without(draft.shape(x), node.dims, true);
  int64_t length = length_of(draft.shape(x), node.dims);
  std::vector<double> samples;
  double low, high;
  if (length > draft.longest_row(op) || !row_values(draft, op, node, length, samples, low, high)) return -1;
  std::vector<std::string> ones(static_cast<size_t>(spatial), "1");
  std::string size = spatial > 1 && draft.chance(0.7) ? "(" + join(ones, ", ") + ")" : "1";
  draft.write(
      node,
      cat("nn.Adaptive", op.name.find("max") != std::string::npos ? "Max" : "Avg", "Pool", spatial, "d(", size, ")"),
      "pool");
  node.call = replace_all(node.call, "{window}", size);
  return draft.compute(std::move(node), samples, low, high);
}

int build_dropout(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.graph[x].kind != Node::Kind::kCompute) return -1;  // Alone it computes nothing.
  Node node;
  node.op = &op;
  node.operands = {x};
  node.shape = draft.shape(x);
  node.type = draft.type;
  std::string share = python_float(draft.pick<double>({0.1, 0.2, 0.5}));
  draft.write(node, cat("nn.Dropout(", share, ")"), "dropout");
  node.call = replace_all(node.call, "{p}", share);
  const Values v = draft.values(x);
  return draft.compute(std::move(node), v.samples, v.low, v.high);
}

int build_triplet_loss(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.rank(x) != 2) return -1;
  const Shape shape = draft.shape(x);
  if (shape[0].is_one() || shape[1].is_one() || shape[1].full > kLongestRow) return -1;
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  node.operands = {x, draft.input(shape), draft.input(shape)};
  if (node.operands[1] < 0 || node.operands[2] < 0) return -1;
  node.dims = {1};
  node.type = draft.type;
  node.ints["sum"] = draft.chance(0.2);
  double squares = 0, rows = static_cast<double>(shape[0].full);
  for (double v : draft.values(x).samples) squares += v * v / kSamples;
  // Distances lie near sqrt(n * (v^2 + 1)) with a deviation of about 1; the margin is added to their difference.
  double spread = 1 + std::sqrt(squares), scale = node.ints["sum"] ? rows : 1;
  std::vector<double> samples;
  Rng own = Rng(86).at(draft.graph.nodes.size());
  for (int i = 0; i < kSamples; ++i) {
    double total = 0;
    for (int r = 0; r < 8; ++r) total += std::max(0.0, spread * own.normal() + node.numbers[0]) / 8;
    samples.push_back(scale * total);
  }
  draft.write(node,
              cat("nn.TripletMarginLoss(margin=", python_float(node.numbers[0]),
                  node.ints["sum"] ? ", reduction=\"sum\")" : ")"),
              "loss");
  const double high = scale * (8 * spread + node.numbers[0]);
  return draft.compute(std::move(node), samples, 0, high);
}

int build_loss(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x) || draft.rank(x) == 0 || draft.graph[x].type != draft.type) return -1;
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  bool probability = op.name == "binary_cross_entropy", divergence = op.name == "kl_div";
  if (probability && !(draft.values(x).low >= 0.02 && draft.values(x).high <= 0.98)) return -1;
  if (divergence && draft.values(x).high > 2) return -1;
  bool signs = op.name == "hinge_loss" || op.name == "soft_margin_loss";
  int target = signs ? draft.sign_input(draft.shape(x))
               : op.name.rfind("binary", 0) == 0 || divergence || op.name == "poisson_nll_loss"
                   ? draft.unit_input(draft.shape(x))
                   : draft.input(draft.shape(x));
  if (target < 0) return -1;
  node.operands = {x, target};
  node.type = draft.graph[x].type;
  node.ints["sum"] = draft.chance(0.2);
  std::vector<double> each;
  double low, high;
  node.shape = draft.shape(x);
  if (!pointwise_values(draft, op, node, each, low, high)) return -1;
  double count = static_cast<double>(elements(draft.shape(x)));
  if (count < 2) return -1;
  double average = 0, squares = 0;
  for (double v : each) average += v / kSamples, squares += v * v / kSamples;
  double deviation = std::sqrt(std::max(0.0, squares - average * average) / count);
  // Many elements average out; inputs of another magnitude still tell answers apart.
  if (draft.long_rows) deviation = std::max(deviation, 0.02 * std::abs(average));
  double scale = node.ints["sum"] ? count : 1;
  std::vector<double> samples;
  Rng own = Rng(82).at(draft.graph.nodes.size());
  for (int i = 0; i < kSamples; ++i) samples.push_back(scale * (average + deviation * own.normal()));
  node.shape = {};
  return draft.compute(std::move(node), samples, low >= 0 ? 0 : scale * low, scale * high);
}

int build_class_loss(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x) || draft.rank(x) != 2 || draft.graph[x].type != draft.type) return -1;
  const Shape shape = draft.shape(x);
  if (shape[1].is_one() || shape[1].tiny < 3 || shape[1].full > kLongestRow) return -1;
  Node node;
  node.op = &op;
  node.numbers = draft.pick(op.attributes);
  if (op.name == "multi_margin_loss" && is_half(draft.type)) return -1;  // PyTorch has none on the CPU.
  int target = draft.index_input({shape[0]}, shape[1]);
  if (target < 0) return -1;
  node.operands = {x, target};
  node.dims = {1};
  node.type = draft.graph[x].type;
  node.ints["sum"] = draft.chance(0.2);
  const auto& from = draft.values(x).samples;
  double rows = static_cast<double>(shape[0].full);
  Rng own = Rng(83).at(draft.graph.nodes.size());
  std::vector<double> samples;
  int64_t n = std::min<int64_t>(shape[1].full, 128);
  for (int j = 0; j < kSamples; ++j) {
    double total = 0;
    for (int r = 0; r < 8; ++r) {
      std::vector<double> row;
      for (int64_t i = 0; i < n; ++i) row.push_back(own.pick(from));
      total += op.row(std::move(row), node.numbers.data())[0] / 8;
    }
    samples.push_back(node.ints["sum"] ? total * rows : total);
  }
  double low = *std::min_element(samples.begin(), samples.end());
  double high = *std::max_element(samples.begin(), samples.end());
  return draft.compute(std::move(node), samples, low - std::abs(low), 2 * high + 1);
}

int build_prelu(Draft& draft, const Operator& op, int x) {
  if (!ordinary(draft, x) || draft.rank(x) == 0 || draft.graph[x].type != draft.type) return -1;
  Node node;
  node.op = &op;
  node.operands = {x};
  node.shape = draft.shape(x);
  node.type = draft.type;
  node.member = draft.member("act");
  node.module = cat("nn.PReLU(", is_half(draft.type) ? cat("dtype=", torch_name(draft.type)) : "", ")");
  int slope = draft.parameter({Dim()}, "", node.member + ".weight");
  node.operands.push_back(slope);
  std::vector<double> samples;
  for (double v : draft.values(x).samples) samples.push_back(v > 0 ? v : 0.25 * v);
  return draft.compute(std::move(node), samples, draft.values(x).low, draft.values(x).high);
}

}  // namespace tritonrl::graphs
