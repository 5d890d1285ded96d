// SPDX-License-Identifier: Apache-2.0
// Rules of operations that move elements and compute nothing.
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "verify/solve/graph_reader.h"

namespace tritonrl {

using graphs::Dim;
using graphs::Node;
using graphs::Shape;

namespace {

using Reader = GraphReader;
using ReadRule = std::function<void(Reader&)>;

void same(Reader& r) { r.result_is(r.tensor(0)); }

void view(Reader& r) {
  int x = r.tensor(0);
  r.result_is(r.viewed(x, r.shape_of_result()));
}

int permuted(Reader& r, int x, const std::vector<int>& order) {
  Node node = r.compute("permute", {x});
  node.dims = order;
  for (int dim : order) node.shape.push_back(r.shape(x)[static_cast<size_t>(dim)]);
  return r.add(std::move(node));
}

void permute(Reader& r) {
  int x = r.tensor(0);
  std::vector<int> order;
  for (int64_t dim : r.integers(1)) order.push_back(r.dim_of(x, dim));
  r.result_is(permuted(r, x, order));
}

void transpose(Reader& r) {
  int x = r.tensor(0);
  std::vector<int> order;
  for (int i = 0; i < r.rank(x); ++i) order.push_back(i);
  bool matrix = r.name() == "t";
  if (r.rank(x) > 1) {
    std::swap(order[static_cast<size_t>(r.dim_of(x, matrix ? 0 : r.integer(1, 0)))],
              order[static_cast<size_t>(r.dim_of(x, matrix ? 1 : r.integer(2, 1)))]);
  }
  r.result_is(permuted(r, x, order));
}

// Also repeat, where what is repeated has size 1.
void expand(Reader& r) {
  int x = r.tensor(0);
  Shape wanted = r.shape_of_result();
  if (wanted.size() > r.shape(x).size()) {
    Shape more = r.shape(x);
    more.insert(more.begin(), wanted.size() - more.size(), Dim());
    x = r.viewed(x, more);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (r.shape(x)[i] == wanted[i]) continue;
    r.require(r.shape(x)[i].is_one(), "a dimension that is not 1");
    Node node = r.compute("expand", {x});
    node.shape = r.shape(x);
    node.shape[i] = wanted[i];
    node.dims = {static_cast<int>(i)};
    x = r.add(std::move(node));
  }
  r.result_is(x);
}

// From `start` on, as long as `length`.
int part(Reader& r, int x, size_t dim, const SizesOf& start, const Dim& length) {
  if (r.shape(x)[dim] == length) return x;
  bool from_zero = std::all_of(start.begin(), start.end(), [](int64_t n) { return n == 0; });
  bool constant = std::all_of(start.begin(), start.end(), [&](int64_t n) { return n == start[0]; });
  Node node = r.compute(constant ? "slice" : "part", {x});
  node.dims = {static_cast<int>(dim)};
  node.shape = r.shape(x);
  node.shape[dim] = length;
  if (constant) {
    node.ints["start"] = from_zero ? 0 : start[0];
  } else {
    node.module_dims = {r.dim(start)};
  }
  return r.add(std::move(node));
}

void slice(Reader& r) {
  r.require(r.integer(4, 1) == 1, "with a step");
  int x = r.tensor(0);
  auto dim = static_cast<size_t>(r.dim_of(x, r.integer(1, 0)));
  SizesOf size = r.operand_sizes(0, dim), start = r.sizes_of(2).value_or(SizesOf(size.size(), 0));
  for (size_t i = 0; i < size.size(); ++i) {
    start[i] = std::clamp<int64_t>(start[i] < 0 ? start[i] + size[i] : start[i], 0, size[i]);
  }
  r.result_is(part(r, x, dim, start, r.dim(r.result_sizes(dim))));
}

void select(Reader& r) {
  int x = r.tensor(0);
  auto dim = static_cast<size_t>(r.dim_of(x, r.integer(1, 0)));
  SizesOf size = r.operand_sizes(0, dim), start = r.sizes_of(2).value_or(SizesOf(size.size(), 0));
  for (size_t i = 0; i < size.size(); ++i) start[i] += start[i] < 0 ? size[i] : 0;
  r.result_is(r.viewed(part(r, x, dim, start, Dim()), r.shape_of_result()));
}

void split_up(Reader& r) {
  int x = r.tensor(0);
  auto dim = static_cast<size_t>(r.dim_of(x, r.integer(2, 0)));
  SizesOf start(r.operand_sizes(0, dim).size(), 0);
  for (size_t out = 0; out < static_cast<size_t>(r.results()); ++out) {
    SizesOf length = r.result_sizes(dim, out);
    if (r.is_read(out)) r.result_is(part(r, x, dim, start, r.dim(length)), out);
    for (size_t i = 0; i < start.size(); ++i) start[i] += length[i];
  }
}

std::vector<int> listed(Reader& r) {
  std::vector<int> out;
  for (const TraceArg& item : r.argument(0)->list) out.push_back(r.tensor(item));
  r.require(!out.empty(), "of nothing");
  return out;
}

// One after the other.
int joined(Reader& r, const std::vector<int>& parts, size_t dim) {
  int x = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    Node node = r.compute("cat", {x, parts[i]});
    node.dims = {static_cast<int>(dim)};
    node.shape = r.shape(x);
    node.shape[dim] =
        i + 1 == parts.size() ? r.dim(r.result_sizes(dim)) : graphs::plus(r.shape(x)[dim], r.shape(parts[i])[dim]);
    x = r.add(std::move(node));
  }
  return x;
}

void concatenate(Reader& r) {
  auto parts = listed(r);
  auto dim = static_cast<size_t>(r.dim_of(parts[0], r.integer(1, 0)));
  Dim sum = r.shape(parts[0])[dim];
  for (size_t i = 1; i < parts.size(); ++i) sum = graphs::plus(sum, r.shape(parts[i]).at(dim));
  r.learn_result(dim, sum);
  r.result_is(joined(r, parts, dim));
}

void stack(Reader& r) {
  auto parts = listed(r);
  int64_t rank = r.rank(parts[0]) + 1, dim = r.integer(1, 0);
  auto at = static_cast<size_t>(dim < 0 ? dim + rank : dim);
  for (int& each : parts) {
    Shape shape = r.shape(each);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), Dim());
    each = r.viewed(each, shape);
  }
  r.result_is(joined(r, parts, at));
}

void pad(Reader& r) {
  r.require(r.number(2, 0) == 0, "with another number");
  int x = r.tensor(0);
  auto sizes = r.integers(1);
  for (size_t i = 0; 2 * i < sizes.size(); ++i) {
    auto dim = static_cast<size_t>(r.rank(x)) - 1 - i;
    int64_t left = sizes[2 * i], right = sizes[2 * i + 1];
    r.require(left >= 0 && right >= 0, "that cuts off");
    if (left == 0 && right == 0) continue;
    r.learn_result(dim, scaled_size(r.shape(x)[dim], 1, left + right, 1));
    Node node = r.compute("pad", {x});
    node.dims = {static_cast<int>(dim)};
    node.ints = {{"left", left}, {"right", right}};
    node.shape = r.shape(x);
    node.shape[dim] = r.dim(r.result_sizes(dim));
    x = r.add(std::move(node));
  }
  r.result_is(x);
}

// Blocks side by side: each dimension in two, the inner one last.
void unfold(Reader& r) {
  int x = r.tensor(0);
  auto dim = static_cast<size_t>(r.dim_of(x, r.integer(1, 0)));
  int64_t size = r.integer(2, 1), step = r.integer(3, 1);
  SizesOf before = r.operand_sizes(0, dim), count = r.result_sizes(dim);
  for (size_t i = 0; i < before.size(); ++i) r.require(size == step && count[i] * size == before[i], "that overlaps");
  Shape split = r.shape(x);
  split[dim] = r.dim(count);
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(dim) + 1, graphs::number(size));
  std::vector<int> order;
  for (size_t i = 0; i < split.size(); ++i) {
    if (i != dim + 1) order.push_back(static_cast<int>(i));
  }
  order.push_back(static_cast<int>(dim) + 1);
  r.result_is(permuted(r, r.viewed(x, split), order));
}

void each_dim(Reader& r, const std::string& op) {
  int x = r.tensor(0);
  auto dims = r.integers(op == "roll" ? 2 : 1), shifts = op == "roll" ? r.integers(1) : dims;
  r.require(dims.size() == shifts.size() && !dims.empty(), "of everything");
  for (size_t i = 0; i < dims.size(); ++i) {
    Node node = r.compute(op, {x});
    node.dims = {r.dim_of(x, dims[i])};
    if (op == "roll") node.ints["shift"] = shifts[i];
    node.shape = r.shape(x);
    x = r.add(std::move(node));
  }
  r.result_is(x);
}

void picked(Reader& r, const std::string& op) {
  int x = r.tensor(0);
  Node node = r.compute(op, {x, r.tensor(2)});
  node.dims = {r.dim_of(x, r.integer(1, 0))};
  r.require(op == "index_select" || r.shape_of_result() == r.shape(node.operands[1]), "of a part");
  if (op == "gather") {  // The index rule takes the other dimensions as they are.
    for (int i = 0; i < r.rank(x); ++i) {
      r.require(
          i == node.dims[0] || r.shape(x)[static_cast<size_t>(i)] == r.shape(node.operands[1])[static_cast<size_t>(i)],
          "of a part");
    }
  }
  r.result(std::move(node));
}

void triangle(Reader& r, const std::string& op) {
  int x = r.tensor(0);
  Node node = r.compute(op, {x});
  node.dims = {r.rank(x) - 2, r.rank(x) - 1};
  node.ints["diagonal"] = r.integer(1, 0);
  r.result(std::move(node));
}

const std::map<std::string, ReadRule>& movement_rules() {
  static const std::map<std::string, ReadRule> all = {
      {"clone", same},
      {"contiguous", same},
      {"dropout", same},
      {"view", view},
      {"_unsafe_view", view},
      {"unsqueeze", view},
      {"squeeze.dim", view},
      {"squeeze.dims", view},
      {"squeeze", view},
      {"permute", permute},
      {"transpose.int", transpose},
      {"t", transpose},
      {"expand", expand},
      {"repeat", expand},
      {"slice.Tensor", slice},
      {"select.int", select},
      {"split.Tensor", split_up},
      {"split_with_sizes", split_up},
      {"cat", concatenate},
      {"stack", stack},
      {"constant_pad_nd", pad},
      {"unfold", unfold},
      {"flip", [](Reader& r) { each_dim(r, "flip"); }},
      {"roll", [](Reader& r) { each_dim(r, "roll"); }},
      {"tril", [](Reader& r) { triangle(r, "tril"); }},
      {"triu", [](Reader& r) { triangle(r, "triu"); }},
      {"index_select", [](Reader& r) { picked(r, "index_select"); }},
      {"gather", [](Reader& r) { picked(r, "gather"); }},
      {"embedding",
       [](Reader& r) {
         r.require(r.has(0) && r.rank(r.tensor(0)) == 2, "of another table");
         Node node = r.compute("embedding", {r.tensor(1), r.tensor(0)});
         r.result(std::move(node));
       }},
      {"repeat_interleave.self_int",
       [](Reader& r) {
         int x = r.tensor(0);
         Node node = r.compute("repeat_interleave", {x});
         r.require(r.argument(2) != nullptr, "of everything");
         node.dims = {r.dim_of(x, r.integer(2, 0))};
         node.ints["repeats"] = r.integer(1, 1);
         r.result(std::move(node));
       }},
      {"diag_embed",
       [](Reader& r) {
         r.require(r.rank(r.tensor(0)) == 1 && r.integer(1, 0) == 0, "of several diagonals");
         r.result(r.compute("diag_embed", {r.tensor(0)}));
       }},
  };
  return all;
}

}  // namespace

bool read_movement(GraphReader& reader) {
  auto it = movement_rules().find(reader.name());
  if (it == movement_rules().end()) return false;
  it->second(reader);
  return true;
}

}  // namespace tritonrl
