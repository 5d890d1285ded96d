// SPDX-License-Identifier: Apache-2.0
// Shape rules of norms, matrix products and movement.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

std::vector<double> normal_samples(Draft& draft, double deviation) {
  Rng own = Rng(84).at(draft.graph.nodes.size());
  std::vector<double> out;
  for (int i = 0; i < kSamples; ++i) out.push_back(deviation * own.normal());
  return out;
}

// Norms: a normalised value has deviation 1 whatever came in, unless there was nothing to normalise.
int normalised(Draft& draft, Node node, int64_t count) {
  if (count < 4) return -1;
  node.type = draft.type;
  double bound = std::sqrt(static_cast<double>(count));
  return draft.compute(std::move(node), normal_samples(draft, 1), -std::min(bound, 8.0), std::min(bound, 8.0));
}

bool varies(const Draft& draft, int x) {
  double sum = 0, squares = 0;
  for (double v : draft.values(x).samples) sum += v / kSamples, squares += v * v / kSamples;
  return squares - sum * sum > 1e-3;
}

}  // namespace

int build_layer_norm(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.rank(x) < 2 || !varies(draft, x)) return -1;
  bool rms = op.name == "rms_norm";
  Node node;
  node.op = &op;
  node.shape = draft.shape(x);
  int rank = draft.rank(x);
  int over = rank >= 3 && draft.chance(0.2) ? 2 : 1;
  if (over == 2 && rank == 4 && draft.long_rows && draft.chance(0.6)) over = 3;
  Shape inner(node.shape.end() - over, node.shape.end());
  for (int i = rank - over; i < rank; ++i) node.dims.push_back(i);
  if (product(inner).full > (draft.long_rows ? kLongestLoop : 8192) || product(inner).tiny < 3) return -1;
  for (const Dim& dim : inner) {
    if (dim.is_one()) return -1;
  }
  node.numbers = draft.pick(op.attributes);
  node.operands = {x};
  bool weight = draft.chance(draft.plain ? 0.75 : 0.92);
  bool bias = weight && !rms && draft.chance(draft.plain ? 0.8 : 0.95);
  node.member = draft.member(draft.plain || draft.chance(0.6) ? "norm" : rms ? "rms" : "ln");
  std::string sizes = over == 1 ? "{0}" : over == 2 ? "({0}, {1})" : "({0}, {1}, {2})";
  std::string eps = !rms && node.numbers[0] == 1e-5 ? "" : cat(", eps=", python_float(node.numbers[0]));
  node.module = cat("nn.", rms ? "RMSNorm(" : "LayerNorm(", sizes, eps, weight ? "" : ", elementwise_affine=False",
                    weight && !bias && !rms ? ", bias=False" : "", draft.type_argument(), ")");
  node.module_dims = inner;
  node.ints["weight"] = weight;
  node.ints["bias"] = bias;
  if (weight) node.operands.push_back(draft.parameter(inner, "", node.member + ".weight"));
  if (bias) node.operands.push_back(draft.parameter(inner, "", node.member + ".bias"));
  return normalised(draft, std::move(node), product(inner).full);
}

int build_group_norm(Draft& draft, const Operator& op, int x) {
  bool instance = op.name == "instance_norm";
  int rank = draft.rank(x);
  if (!draft.usable(x) || rank < (instance || draft.plain ? 3 : 2) || !varies(draft, x)) return -1;
  Node node;
  node.op = &op;
  node.shape = draft.shape(x);
  const Dim channels = node.shape[1];
  if (channels.is_one() || !draft.graph.symbols.count(channels.text)) return -1;
  Shape rest(node.shape.begin() + 2, node.shape.end());
  int64_t groups = 1;
  if (!instance) {
    std::vector<int64_t> fitting;
    for (int64_t g :
         draft.plain ? std::vector<int64_t>{1, 2, 3, 4} : std::vector<int64_t>{1, 2, 2, 3, 4, 4, 8, 8, 16}) {
      if (channels.full % g == 0 && channels.tiny % g == 0) fitting.push_back(g);
    }
    groups = draft.pick(fitting);
    if (product(rest).full * channels.full / groups > draft.longest_row(op)) return -1;
  } else if (product(rest).full > draft.longest_row(op)) {
    return -1;
  }
  node.numbers = draft.pick(op.attributes);
  node.operands = {x};
  node.ints["groups"] = instance ? 0 : groups;
  for (int i = 1; i < rank; ++i) node.dims.push_back(i);
  bool weight = draft.chance(draft.plain ? 0.7 : instance ? 0.35 : 0.93);
  node.member = draft.member(instance ? "norm" : "gn");
  node.module =
      instance ? cat("nn.InstanceNorm", rank - 2, "d({0}", weight ? ", affine=True" : "", draft.type_argument(), ")")
               : cat("nn.GroupNorm(", groups, ", {0}", weight ? "" : ", affine=False", draft.type_argument(), ")");
  node.module_dims = {channels};
  node.ints["weight"] = node.ints["bias"] = weight;
  Shape viewed(node.shape.size() - 1, Dim());
  viewed[0] = channels;
  if (weight) {
    node.operands.push_back(draft.parameter(viewed, "", node.member + ".weight"));
    node.operands.push_back(draft.parameter(viewed, "", node.member + ".bias"));
  }
  return normalised(draft, std::move(node), product(rest).tiny * (instance ? 1 : channels.tiny / groups));
}

int build_batch_norm(Draft& draft, const Operator& op, int x) {
  int rank = draft.rank(x);
  if (!draft.usable(x) || rank < 2 || !varies(draft, x)) return -1;
  Node node;
  node.op = &op;
  node.shape = draft.shape(x);
  const Dim channels = node.shape[1];
  if (channels.is_one()) return -1;
  node.numbers = {1e-5};
  node.member = draft.member("bn");
  node.module = cat("nn.BatchNorm", std::max(1, rank - 2), "d({0}", draft.type_argument(), ")");
  node.module_dims = {channels};
  Shape viewed(static_cast<size_t>(rank) - 1, Dim());
  viewed[0] = channels;
  node.operands = {x};
  for (const char* name : {".running_mean", ".running_var", ".weight", ".bias"}) {
    node.operands.push_back(draft.parameter(viewed, "", node.member + name));
  }
  node.type = draft.type;
  const Values& v = draft.values(x);
  auto samples = v.samples;
  return draft.compute(std::move(node), samples, 2 * v.low - 1, 2 * v.high + 1);
}

int build_matmul(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x)) return -1;
  const Shape left = draft.shape(x);
  Node node;
  node.op = &op;
  node.type = draft.type;
  bool batched = op.name == "bmm";
  size_t rank = left.size();
  if ((batched && rank != 3) || rank < 2 || rank > 4 || (!batched && rank != 2)) return -1;
  bool transposed = op.name == "matmul" && draft.chance(0.3), square = !draft.plain && draft.chance(0.12);
  Dim inner = left[rank - 1];
  if (inner.is_one() || inner.full < 3 || left[rank - 2].is_one()) return -1;
  Dim columns = square ? inner : draft.symbol(Role::kFeatures);
  Shape right(left.begin(), left.end() - 2);
  right.push_back(transposed ? columns : inner);
  right.push_back(transposed ? inner : columns);
  int y = draft.input(right);
  if (y < 0) return -1;
  node.operands = {x, y};
  node.ints["transposed"] = transposed;
  node.shape = left;
  node.shape[rank - 1] = columns;
  auto samples = draft.summed(x, inner.full, 1);
  double bound = 6 * std::abs(*std::max_element(samples.begin(), samples.end())) + 1;
  return draft.compute(std::move(node), samples, -bound, bound);
}

// Of one kind an operator: transposed operands, batches of matrices, or a batch times one matrix.
int build_product(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x)) return -1;
  const Shape left = draft.shape(x);
  size_t rank = left.size();
  bool shared = op.name == "shared_matmul", batched = op.name.rfind("batched_", 0) == 0;
  bool left_turned = op.name == "matmul_tn" || op.name == "matmul_tt";
  bool right_turned = op.name == "matmul_nt" || op.name == "matmul_tt" || op.name == "batched_matmul_nt";
  if (shared || batched ? rank < 3 || rank > 4 : rank != 2) return -1;
  Dim inner = left[rank - (left_turned ? 2 : 1)], rows = left[rank - (left_turned ? 1 : 2)];
  if (inner.is_one() || inner.full < 3 || rows.is_one()) return -1;
  Dim columns = draft.symbol(Role::kFeatures);
  Shape right;
  if (batched) right.assign(left.begin(), left.end() - 2);
  right.push_back(right_turned ? columns : inner);
  right.push_back(right_turned ? inner : columns);
  Node node;
  node.op = &op;
  node.type = draft.type;
  node.shape.assign(left.begin(), left.end() - 2);
  node.shape.push_back(rows);
  node.shape.push_back(columns);
  if (draft.too_much(node.shape, inner.full)) return -1;
  node.operands = {x, draft.input(right)};
  if (node.operands[1] < 0) return -1;
  node.ints = {{"transposed", right_turned}, {"left_transposed", left_turned}, {"shared", shared}};
  draft.write(node);
  std::string lead = rank == 4 ? "bh" : "b";
  std::string batch =
      draft.pick<std::string>({cat(lead, "ij,", lead, "jk->", lead, "ik"), cat(lead, "mk,", lead, "kn->", lead, "mn")});
  if (right_turned) batch = cat(lead, "qd,", lead, "kd->", lead, "qk");
  if (shared) batch = rank == 4 ? "bijl,lk->bijk" : draft.pick<std::string>({"bij,jk->bik", "btd,de->bte"});
  node.call = replace_all(node.call, "{equation}", batch);
  auto samples = draft.summed(x, inner.full, 1);
  double bound = 6 * std::abs(*std::max_element(samples.begin(), samples.end())) + 1;
  return draft.compute(std::move(node), samples, -bound, bound);
}

// A diagonal matrix times x: rows by numbers.
int build_diagonal(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.rank(x) != 2 || draft.shape(x)[0].is_one() || draft.shape(x)[1].is_one()) return -1;
  Node node;
  node.op = &op;
  node.type = draft.type;
  node.shape = draft.shape(x);
  node.operands = {x, draft.input({node.shape[0]})};
  if (node.operands[1] < 0) return -1;
  draft.write(node);
  auto samples = draft.shuffled(x);
  const auto& factors = draft.values(node.operands[1]).samples;
  for (size_t i = 0; i < samples.size(); ++i) samples[i] *= factors[i];
  double bound = 5 * std::max(std::abs(draft.values(x).low), std::abs(draft.values(x).high));
  return draft.compute(std::move(node), samples, -bound, bound);
}

// Queries x, keys and values of their own. The scale is 1 / sqrt(width) unless another is said.
int build_attention(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.rank(x) < 3 || draft.rank(x) > 4) return -1;
  const Shape shape = draft.shape(x);
  Dim width = shape.back(), time = shape[shape.size() - 2];
  if (width.is_one() || time.is_one() || width.full > 256 || time.full > 4096) return -1;
  Node node;
  node.op = &op;
  node.type = draft.type;
  node.shape = shape;
  node.operands = {x, draft.input(shape), draft.input(shape)};
  if (node.operands[1] < 0 || node.operands[2] < 0 || draft.too_much(shape, 2 * time.full)) return -1;
  draft.write(node);
  double columns = static_cast<double>(width.full), scale = 1 / std::sqrt(columns);
  if (draft.chance(0.6)) {
    node.call = replace_all(node.call, ", scale={a}", "");
  } else {
    node.numbers = draft.pick(op.attributes);
    scale = node.numbers[0];
  }
  // A weighted mean: as many values as their weights let through.
  double squares = 0;
  for (double v : draft.values(x).samples) squares += v * v / kSamples;
  double sharp = std::exp(std::min(20.0, squares * columns * scale * scale));
  double effective = std::max(1.0, static_cast<double>(time.full) / sharp);
  return draft.compute(std::move(node), normal_samples(draft, 1 / std::sqrt(effective)), -5, 5);
}

int build_linear(Draft& draft, const Operator& op, int x) {
  if (!draft.usable(x) || draft.rank(x) < 2 || draft.rank(x) > 4) return -1;
  Node node;
  node.op = &op;
  node.type = draft.type;
  node.shape = draft.shape(x);
  Dim inner = node.shape.back();
  if (inner.is_one() || inner.full < 3) return -1;
  if (product(Shape(node.shape.begin(), node.shape.end() - 1)).is_one()) return -1;  // One row is no product.
  Dim columns = draft.symbol(Role::kFeatures);
  bool bias = draft.chance(draft.plain ? 0.7 : 0.88);
  node.member = draft.member(draft.one_of({"linear", "fc", "proj"}));
  node.module = cat("nn.Linear({0}, {1}", bias ? "" : ", bias=False", draft.type_argument(), ")");
  node.module_dims = {inner, columns};
  node.ints["bias"] = bias;
  node.operands = {x, draft.parameter({columns, inner}, "", node.member + ".weight")};
  if (bias) node.operands.push_back(draft.parameter({columns}, "", node.member + ".bias"));
  node.shape.back() = columns;
  auto samples = draft.summed(x, inner.full, 1 / std::sqrt(3.0 * static_cast<double>(inner.full)));
  double bound = 6 * std::abs(*std::max_element(samples.begin(), samples.end())) + 1;
  return draft.compute(std::move(node), samples, -bound, bound);
}

int build_move(Draft& draft, const Operator& op, int x) {
  if (!draft.is_float(x)) return -1;
  Node node;
  node.op = &op;
  node.operands = {x};
  node.type = draft.graph[x].type;
  Shape shape = draft.shape(x);
  int rank = draft.rank(x);
  const std::string& name = op.name;
  auto any_dim = [&] { return static_cast<int>(draft.rng.below(rank)); };
  auto at = [&](int dim) -> Dim& { return shape[static_cast<size_t>(dim)]; };
  if (name == "transpose" || name == "permute") {
    if (rank < 2 || (name == "permute" && rank < 3)) return -1;
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    if (name == "permute") {
      for (int tries = 0; tries < 4 && std::is_sorted(order.begin(), order.end()); ++tries) draft.rng.shuffle(order);
    } else {
      int a = draft.chance(0.7) ? rank - 2 : any_dim(), b = rank - 1;
      if (a == b) return -1;
      std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
    }
    if (std::is_sorted(order.begin(), order.end())) return -1;
    node.dims = order;
    for (int dim : order) node.shape.push_back(at(dim));
  } else if (name == "flip" || name == "roll") {
    if (rank < 1) return -1;
    int dim = any_dim();
    if (at(dim).is_one() || at(dim).tiny < 3) return -1;
    node.dims = {dim};
    if (name == "roll") node.ints["shift"] = draft.pick<int64_t>({1, 2, -1, -2});
    node.shape = shape;
  } else if (name == "flatten") {
    if (rank < 3) return -1;
    int from = rank == 4 && draft.chance(0.3) ? 2 : 1;
    node.ints["from"] = from;
    std::vector<std::string> forms = {op.torch, op.torch};
    if (from == 1) forms.emplace_back("{x}.reshape({x}.shape[0], -1)");
    // A view needs what lies in memory as it came.
    if (from == 1 && draft.graph[x].kind == Node::Kind::kInput) forms.emplace_back("{x}.view({x}.size(0), -1)");
    node.call = draft.pick(forms);
    node.shape.assign(shape.begin(), shape.begin() + from);
    node.shape.push_back(product(Shape(shape.begin() + from, shape.end())));
  } else if (name == "squeeze") {
    std::vector<int> ones;
    for (int i = 0; i < rank; ++i) {
      if (at(i).is_one()) ones.push_back(i);
    }
    if (rank < 2 || ones.empty() || static_cast<int>(ones.size()) == rank) return -1;
    node.dims = {draft.pick(ones)};
    node.shape = shape;
    node.shape.erase(node.shape.begin() + node.dims[0]);
  } else if (name == "unsqueeze") {
    if (rank < 1 || rank > 3) return -1;
    int dim = static_cast<int>(draft.rng.below(rank + 1));
    node.dims = {dim};
    node.shape = shape;
    node.shape.insert(node.shape.begin() + dim, Dim());
  } else if (name == "expand" || name == "repeat_interleave") {
    if (rank < 1 || rank > 3) return -1;
    int dim = any_dim();
    if (name == "expand") {
      if (!at(dim).is_one()) return -1;
      at(dim) = number(draft.pick<int64_t>({2, 3}));
      node.ints["size"] = at(dim).full;
    } else {
      if (at(dim).is_one() || at(dim).full > 2048) return -1;
      node.ints["repeats"] = draft.pick<int64_t>({2, 3});
      at(dim) = {cat("(", node.ints["repeats"], " * ", at(dim).text, ")"), at(dim).full * node.ints["repeats"],
                 at(dim).tiny * node.ints["repeats"]};
    }
    node.dims = {dim};
    node.shape = shape;
  } else if (name == "cat" || name == "stack") {
    if (rank < 1 || (name == "stack" && rank > 3)) return -1;
    int y = draft.other(shape, x, false, false);
    if (y < 0 || draft.graph[y].kind == Node::Kind::kParameter || !(draft.shape(y) == shape) ||
        draft.graph[y].type != node.type) {
      return -1;
    }
    node.operands.push_back(y);
    int dim = name == "stack" ? static_cast<int>(draft.rng.below(rank + 1)) : any_dim();
    node.dims = {dim};
    node.shape = shape;
    if (name == "stack") {
      node.shape.insert(node.shape.begin() + dim, number(2));
    } else {
      if (at(dim).is_one()) return -1;
      node.shape[static_cast<size_t>(dim)] = plus(at(dim), at(dim));
    }
  } else if (name == "slice" || name == "narrow") {
    if (rank < 1) return -1;
    int dim = any_dim();
    int64_t start = draft.pick<int64_t>({0, 1, 2});
    if (at(dim).is_one() || std::min(at(dim).tiny, at(dim).full) < start + 3 ||
        !draft.graph.symbols.count(at(dim).text))
      return -1;
    node.dims = {dim};
    node.ints["start"] = start;
    if (name == "narrow") {  // Fixed length.
      node.ints["length"] = draft.pick<int64_t>({2, 3});
      at(dim) = number(node.ints["length"]);
    } else {  // All but the ends.
      int64_t cut = start + (node.ints["end"] = draft.pick<int64_t>({0, 1}));
      if (cut == 0 || at(dim).tiny - cut < 2) return -1;
      at(dim) = {cat("(", at(dim).text, " - ", cut, ")"), at(dim).full - cut, at(dim).tiny - cut};
    }
    node.shape = shape;
  } else if (name == "chunk_glu") {
    if (rank < 2) return -1;
    Dim& last = at(rank - 1);
    if (last.full % 2 || last.tiny % 2) return -1;
    node.dims = {rank - 1};
    node.ints["part"] = draft.chance(0.5);
    last = {cat("(", last.text, " // 2)"), last.full / 2, last.tiny / 2};
    node.shape = shape;
  } else if (name == "pad") {
    if (rank < 2) return -1;
    Dim& last = at(rank - 1);
    if (last.is_one()) return -1;
    node.dims = {rank - 1};
    node.ints = {{"left", draft.pick<int64_t>({0, 1, 2})}, {"right", draft.pick<int64_t>({1, 2, 3})}};
    int64_t more = node.ints["left"] + node.ints["right"];
    last = {cat("(", last.text, " + ", more, ")"), last.full + more, last.tiny + more};
    node.shape = shape;
  } else if (name == "tril" || name == "triu") {
    if (rank < 2 || shape[static_cast<size_t>(rank) - 1].is_one() || shape[static_cast<size_t>(rank) - 2].is_one())
      return -1;
    node.dims = {rank - 2, rank - 1};
    node.ints["diagonal"] = draft.pick<int64_t>({0, 0, 1, -1});
    node.shape = shape;
  } else if (name == "index_select" || name == "gather") {
    if (rank < 1) return -1;
    int dim = any_dim();
    if (at(dim).is_one() || !draft.graph.symbols.count(at(dim).text)) return -1;
    Dim below = at(dim), picked = draft.symbol(Role::kTime);
    at(dim) = picked;
    node.dims = {dim};
    int index = draft.index_input(name == "gather" ? shape : Shape{picked}, below);
    if (index < 0) return -1;
    node.operands.push_back(index);
    node.shape = shape;
  } else {
    return -1;
  }
  auto samples = draft.shuffled(x);
  double low = draft.values(x).low, high = draft.values(x).high;
  if (name == "pad" || name[0] == 't') low = std::min(low, 0.0), high = std::max(high, 0.0);
  return draft.compute(std::move(node), samples, low, high, draft.values(x).exact);
}

}  // namespace tritonrl::graphs
