// SPDX-License-Identifier: Apache-2.0
// Rules of matrix products, attention, convolutions and pools.
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "verify/solve/graph_reader.h"

namespace tritonrl {

using graphs::Dim;
using graphs::Node;
using graphs::Shape;
using graphs::Window;

namespace {

using Reader = GraphReader;
using ReadRule = std::function<void(Reader&)>;

// An operand whose last two dimensions were swapped is read as it was before.
bool turned(Reader& r, int* node) {
  const Node& move = r.graph()[*node];
  if (move.op == nullptr || (move.op->name != "permute" && move.op->name != "transpose")) return false;
  int rank = static_cast<int>(move.dims.size());
  for (int i = 0; i < rank; ++i) {
    int wanted = i == rank - 2 ? rank - 1 : i == rank - 1 ? rank - 2 : i;
    if (move.dims[static_cast<size_t>(i)] != wanted) return false;
  }
  *node = move.operands[0];
  return true;
}

// x times y, of two or more dimensions, with the shape that follows.
int product_of(Reader& r, int x, int y) {
  Shape left = r.shape(x), right = r.shape(y);
  const Node& diagonal = r.graph()[x];
  if (diagonal.op != nullptr && diagonal.op->name == "diag_embed" && right.size() == 2) {
    Node node = r.compute("diag_matmul", {y, diagonal.operands[0]});
    node.shape = right;
    return r.add(std::move(node));
  }
  // Rows, columns or inner dimension of one: no product of tiles.
  size_t rank = left.size();
  if (left[rank - 1].is_one()) return r.pointwise("mul", {x, y});
  if (right.back().is_one()) {
    std::swap(right[right.size() - 1], right[right.size() - 2]);
    int each = r.pointwise("mul", {x, r.viewed(y, right)});
    return reduced(r, "sum", each, {r.rank(each) - 1}, true);
  }
  bool shared = rank > 2 && right.size() == 2;
  if (left[rank - 2].is_one()) {
    Shape rows = left;
    if (shared) {
      rows.erase(rows.end() - 2);
      int out = product_of(r, r.viewed(x, rows), y);
      rows = r.shape(out);
      rows.insert(rows.end() - 1, Dim());
      return r.viewed(out, rows);
    }
    std::swap(rows[rank - 1], rows[rank - 2]);
    int each = r.pointwise("mul", {y, r.viewed(x, rows)});
    return reduced(r, "sum", each, {r.rank(each) - 2}, true);
  }
  r.require(shared || left.size() == right.size(), "of other ranks");
  Shape shape(left.begin(), left.end() - 1);
  shape.push_back(right.back());
  if (!shared) {
    for (size_t i = 0; i + 2 < left.size(); ++i) {
      r.require(left[i] == right[i] || left[i].is_one() || right[i].is_one(), "of batches that do not go together");
      if (left[i].is_one()) shape[i] = right[i];
    }
  }
  bool by_m = !shared && turned(r, &x), by_n = turned(r, &y);
  Node node = r.compute(shared ? "shared_matmul" : left.size() > 2 ? "batched_matmul" : "matmul", {x, y});
  node.ints = {{"transposed", by_n}, {"left_transposed", by_m}, {"shared", shared}};
  node.shape = shape;
  return r.add(std::move(node));
}

void matmul(Reader& r) {
  int x = r.tensor(0), y = r.tensor(1);
  bool vector_x = r.rank(x) == 1, vector_y = r.rank(y) == 1;
  if (vector_x) x = r.viewed(x, {Dim(), r.shape(x)[0]});
  if (vector_y) y = r.viewed(y, {r.shape(y)[0], Dim()});
  int out = product_of(r, x, y);
  r.result_is(vector_x || vector_y ? r.viewed(out, r.shape_of_result()) : out);
}

void linear(Reader& r) {
  int x = r.tensor(0), y = r.tensor(1);
  Shape rows(r.shape(x).begin(), r.shape(x).end() - 1);
  if (graphs::product(rows).is_one() || r.shape(x).back().is_one()) {  // A matrix times a vector, or two vectors.
    bool outer = r.shape(x).back().is_one();
    int out = outer ? r.pointwise("mul", {x, r.viewed(y, {r.shape(y)[0]})})
                    : reduced(r, "sum", r.pointwise("mul", {y, r.viewed(x, {r.shape(x).back()})}), {1}, false);
    if (r.has(2)) out = r.pointwise("add", {out, r.tensor(2)});
    return r.result_is(r.viewed(out, r.shape_of_result()));
  }
  Node node = r.compute("linear", {x, y});
  node.shape = r.shape(x);
  node.shape.back() = r.shape(y)[0];
  node.ints["bias"] = r.has(2);
  if (r.has(2)) node.operands.push_back(r.tensor(2));
  r.result_is(r.add(std::move(node)));
}

// beta * c + alpha * a b.
void addmm(Reader& r) {
  r.require(r.number(9, 1, "alpha") == 1 && r.number(9, 1, "beta") == 1, "with factors");
  int out = product_of(r, r.tensor(1), r.tensor(2));
  r.result_is(r.pointwise("add", {r.tensor(0), out}));
}

// Two tensors, one letter that is summed over; a matrix product after a permutation of each.
void einsum(Reader& r) {
  const TraceArg* list = r.argument(1);
  r.require(list != nullptr && list->list.size() == 2, "of other than two tensors");
  std::vector<std::string> sides = split(replace_all(r.text(0, ""), " ", ""), '>');
  r.require(sides.size() == 2 && sides[0].find('.') == std::string::npos, "without a result");
  std::vector<std::string> in = split(sides[0].substr(0, sides[0].size() - 1), ',');
  r.require(in.size() == 2, "of other than two tensors");
  int x = r.tensor(list->list[0]), y = r.tensor(list->list[1]);
  const std::string out = sides[1];
  std::string batch, rows, columns, inner;
  for (char c : in[0]) {
    bool there = in[1].find(c) != std::string::npos, kept = out.find(c) != std::string::npos;
    (there ? kept ? batch : inner : rows) += c;
    r.require(there || kept, "a letter is summed over alone");
  }
  for (char c : in[1]) {
    if (in[0].find(c) == std::string::npos) columns += c;
  }
  r.require(inner.size() == 1 && columns.size() == 1 && out == batch + rows + columns, out);
  auto ordered = [&](int node, const std::string& letters, const std::string& wanted) {
    if (letters == wanted) return node;
    Node move = r.compute("permute", {node});
    for (char c : wanted) move.dims.push_back(static_cast<int>(letters.find(c)));
    for (int dim : move.dims) move.shape.push_back(r.shape(node)[static_cast<size_t>(dim)]);
    return r.add(std::move(move));
  };
  r.require(batch.empty() || rows.size() == 1, "of several dimensions beside a batch");
  x = ordered(x, in[0], batch + rows + inner);
  y = ordered(y, in[1], batch + inner + columns);
  r.result_is(product_of(r, x, y));
}

void attention(Reader& r) {
  int q = r.tensor(0), k = r.tensor(1), v = r.tensor(2);
  r.require(r.number(4, 0) == 0, "with dropout");
  bool causal = r.truth(5, false), masked = r.has(3);
  const TraceArg* scale = r.argument(6, "scale");
  std::vector<double> numbers;
  if (scale != nullptr) numbers = {r.number(6, 1, "scale")};
  r.require(r.rank(q) == r.rank(k) && r.rank(q) >= 3, "of other ranks");
  if (!causal && !masked) return r.result(r.compute("scaled_dot_product_attention", {q, k, v}, numbers));
  Node scores = r.compute("batched_matmul", {q, k});
  scores.ints = {{"transposed", 1}, {"left_transposed", 0}, {"shared", 0}};
  scores.shape = r.shape(q);
  scores.shape.back() = r.shape(k)[static_cast<size_t>(r.rank(k)) - 2];
  scores.type = graphs::Type::kFloat32;
  Node scaled = r.compute(numbers.empty() ? "scale" : "mul_scalar", {r.add(std::move(scores))},
                          numbers.empty() ? std::vector<double>{-0.5} : numbers);
  if (numbers.empty()) scaled.module_dims = {r.shape(q).back()};
  scaled.shape = r.shape(scaled.operands[0]);
  int weights = r.add(std::move(scaled));
  if (causal) {
    Node mask = r.compute("causal_mask", {weights});
    mask.shape = r.shape(weights);
    mask.dims = {r.rank(weights) - 2, r.rank(weights) - 1};
    weights = r.add(std::move(mask));
  }
  if (masked) {
    int mask = r.tensor(3);
    r.require(r.graph()[mask].type != graphs::Type::kBool, "with a mask of truth values");
    weights = r.pointwise("add", {weights, mask});
  }
  Node softmax = r.compute("softmax", {weights});
  softmax.shape = r.shape(weights);
  softmax.dims = {r.rank(weights) - 1};
  int all = r.add(std::move(softmax));
  r.result_is(product_of(r, all, v));
}

// A list of an operation's argument, one integer for each dimension.
int64_t item(const std::vector<int64_t>& list, size_t at, int64_t fallback) {
  return list.empty() ? fallback : list.size() == 1 ? list[0] : list.at(at);
}

Dim swept(const Dim& size, const Window& w) {
  int64_t reach = w.dilation * (w.kernel - 1) + 1 - 2 * w.padding;
  return scaled_size(size, 1, w.stride - reach, w.stride);
}

Dim spread(const Dim& size, const Window& w) {
  return scaled_size(size, w.stride, w.dilation * (w.kernel - 1) + 1 + w.output_padding - 2 * w.padding - w.stride, 1);
}

// A batch of one around a tensor that has none.
int batched(Reader& r, int x, size_t rank) {
  if (r.shape(x).size() == rank) return x;
  r.require(r.shape(x).size() + 1 == rank, "of another rank");
  Shape shape = r.shape(x);
  shape.insert(shape.begin(), Dim());
  return r.viewed(x, shape);
}

void result_of_batch(Reader& r, Node node, size_t rank, bool added) {
  node.shape.clear();
  Shape shape = r.shape_of_result();
  if (!added) return r.result(std::move(node));
  node.shape = shape;
  node.shape.insert(node.shape.begin(), Dim());
  r.require(node.shape.size() == rank, "of another rank");
  r.result_is(r.viewed(r.add(std::move(node)), shape));
}

void convolution(Reader& r, size_t spatial, bool transposed) {
  int input = r.tensor(0);
  r.require(r.has(1), "without weights");
  r.require(r.argument(4) == nullptr || r.argument(4)->kind != TraceArg::Kind::kText, "with padding by name");
  int x = batched(r, input, spatial + 2);
  auto strides = r.integers(3), padding = r.integers(4), dilation = r.integers(transposed ? 7 : 5);
  auto output_padding = transposed ? r.integers(5) : std::vector<int64_t>{};
  SizesOf kernel_sizes;
  std::vector<Window> windows(spatial);
  for (size_t s = 0; s < spatial; ++s) {
    SizesOf taps = r.operand_sizes(1, s + 2);
    r.require(std::all_of(taps.begin(), taps.end(), [&](int64_t n) { return n == taps[0]; }), "a kernel that grows");
    windows[s] = {taps[0], item(strides, s, 1), item(padding, s, 0), item(dilation, s, 1), item(output_padding, s, 0)};
    Dim before = r.shape(x)[s + 2];
    r.learn_result(s + (x == input ? 2 : 1), transposed ? spread(before, windows[s]) : swept(before, windows[s]));
  }
  // Each channel by itself, or so many groups.
  SizesOf channels = r.operand_sizes(0, x == input ? 1 : 0), first = r.operand_sizes(1, 0),
          second = r.operand_sizes(1, 1);
  bool depthwise = !transposed && first == channels && channels[0] > 1 &&
                   std::all_of(second.begin(), second.end(), [](int64_t n) { return n == 1; });
  int64_t groups = depthwise ? 0 : r.integer(transposed ? 6 : 6, 1);
  const Dim in = r.shape(x)[1];
  auto part = [&](const Dim& dim) { return groups <= 1 ? dim : scaled_size(dim, 1, 0, groups); };
  Shape shape;
  if (transposed) {
    shape = {in, r.weight_size(1, 1)};
  } else {
    shape = {r.weight_size(1, 0), depthwise ? Dim() : part(in)};
  }
  for (const Window& window : windows) shape.push_back(graphs::number(window.kernel));
  Dim out = !transposed ? shape[0] : groups <= 1 ? shape[1] : scaled_size(shape[1], groups, 0, 1);
  r.learn_result(x == input ? 1 : 0, out);
  std::string name = cat(transposed ? "conv_transpose" : "conv", spatial, "d");
  Node node = r.compute(depthwise && spatial < 3 ? "depthwise_" + name : name, {x, r.weight(1, shape)});
  node.windows = windows;
  node.ints = {{"groups", groups}, {"bias", r.has(2)}, {"transposed", transposed}};
  if (r.has(2)) node.operands.push_back(r.weight(2));
  result_of_batch(r, std::move(node), spatial + 2, x != input);
}

void pool(Reader& r, size_t spatial, bool maximum) {
  int input = r.tensor(0), x = batched(r, input, spatial + 2);
  auto kernel = r.integers(1), stride = r.integers(2), padding = r.integers(3);
  auto dilation = maximum ? r.integers(4) : std::vector<int64_t>{};
  bool rounds_up = r.truth(maximum ? 5 : 4, false);
  Node node = r.compute(cat(maximum ? "max_pool" : "avg_pool", spatial, "d"), {x});
  for (size_t s = 0; s < spatial; ++s) {
    Window w{item(kernel, s, 1), 0, item(padding, s, 0), item(dilation, s, 1), 0};
    w.stride = stride.empty() ? w.kernel : item(stride, s, 1);
    r.require(maximum || w.padding == 0 || r.truth(5, true), "padding that does not count");
    size_t dim = s + (x == input ? 2 : 1);
    SizesOf before = r.operand_sizes(0, dim), after = r.result_sizes(dim);
    for (size_t i = 0; i < before.size() && rounds_up; ++i) {
      int64_t steps = before[i] + 2 * w.padding - w.dilation * (w.kernel - 1) - 1;
      r.require(after[i] == steps / w.stride + 1, "rounded up");
    }
    r.learn_result(dim, swept(r.shape(x)[s + 2], w));
    node.windows.push_back(w);
  }
  r.require(maximum || r.argument(6) == nullptr, "with a divisor of its own");
  result_of_batch(r, std::move(node), spatial + 2, x != input);
}

void adaptive_pool(Reader& r, size_t spatial, bool maximum) {
  int x = r.tensor(0);
  r.require(r.shape(x).size() == spatial + 2, "without a batch");
  std::vector<int> dims;
  bool one = true, same = true, even = true;
  std::vector<Window> windows;
  for (size_t s = 0; s < spatial; ++s) {
    SizesOf before = r.operand_sizes(0, s + 2), after = r.result_sizes(s + 2);
    dims.push_back(static_cast<int>(s) + 2);
    int64_t width = before[0] / after[0];
    for (size_t i = 0; i < before.size(); ++i) {
      one &= after[i] == 1;
      same &= after[i] == before[i];
      even &= after[i] * width == before[i];
    }
    windows.push_back({width, width, 0, 1, 0});
  }
  if (same) return r.result_is(x);
  if (one) return r.result_is(reduced(r, maximum ? "amax" : "mean", x, dims, true));
  r.require(even, "to places of different sizes");
  Node node = r.compute(cat(maximum ? "max_pool" : "avg_pool", spatial, "d"), {x});
  node.windows = windows;
  r.result(std::move(node));
}

const std::map<std::string, ReadRule>& product_rules() {
  static const std::map<std::string, ReadRule> all = [] {
    std::map<std::string, ReadRule> out = {{"matmul", matmul}, {"mm", matmul},
                                           {"bmm", matmul},    {"mv", matmul},
                                           {"dot", matmul},    {"linear", linear},
                                           {"addmm", addmm},   {"baddbmm", addmm},
                                           {"einsum", einsum}, {"scaled_dot_product_attention", attention}};
    for (size_t spatial : {1, 2, 3}) {
      out[cat("conv", spatial, "d")] = [=](Reader& r) { convolution(r, spatial, false); };
      ReadRule transposed = [=](Reader& r) { convolution(r, spatial, true); };
      out[cat("conv_transpose", spatial, "d")] = out[cat("conv_transpose", spatial, "d.input")] = transposed;
      for (bool maximum : {false, true}) {
        out[cat(maximum ? "max" : "avg", "_pool", spatial, "d")] = [=](Reader& r) { pool(r, spatial, maximum); };
        ReadRule adaptive = [=](Reader& r) { adaptive_pool(r, spatial, maximum); };
        out[cat("adaptive_", maximum ? "max" : "avg", "_pool", spatial, "d")] = adaptive;
      }
    }
    return out;
  }();
  return all;
}

}  // namespace

bool read_products(GraphReader& reader) {
  auto it = product_rules().find(reader.name());
  if (it == product_rules().end()) return false;
  it->second(reader);
  return true;
}

}  // namespace tritonrl
