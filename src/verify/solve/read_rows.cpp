// SPDX-License-Identifier: Apache-2.0
// Rules of operations along rows: reductions, softmax, norms, scans, losses.
#include <algorithm>
#include <functional>
#include <limits>

#include "base/text.h"
#include "verify/solve/graph_reader.h"

namespace tritonrl {

using graphs::Dim;
using graphs::Node;
using graphs::Shape;

namespace {

using Reader = GraphReader;
using ReadRule = std::function<void(Reader&)>;

Shape without(const Shape& shape, const std::vector<int>& dims, bool keep) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool gone = std::find(dims.begin(), dims.end(), static_cast<int>(i)) != dims.end();
    if (!gone) out.push_back(shape[i]);
    if (gone && keep) out.emplace_back();
  }
  return out;
}

// The dimensions of argument `at`, ascending; all where there are none.
std::vector<int> dims_of(Reader& r, int x, size_t at) {
  std::vector<int> dims;
  for (int64_t dim : r.integers(at)) dims.push_back(r.dim_of(x, dim));
  std::sort(dims.begin(), dims.end());
  if (dims.empty()) {
    for (int i = 0; i < r.rank(x); ++i) dims.push_back(i);
  }
  return dims;
}

void reduce(Reader& r, const std::string& op, size_t dims_at, size_t keep_at, size_t out = 0) {
  int x = r.tensor(0);
  r.result_is(reduced(r, op, x, dims_of(r, x, dims_at), r.truth(keep_at, false, "keepdim")), out);
}

ReadRule reducing(const std::string& op) {
  return [op](Reader& r) { reduce(r, op, 1, 2); };
}

// Values and, where somebody asks for them, indices.
ReadRule picking(const std::string& op, const std::string& index) {
  return [=](Reader& r) {
    if (r.is_read(0)) reduce(r, op, 1, 2);
    if (r.is_read(1)) reduce(r, index, 1, 2, 1);
  };
}

void deviation(Reader& r, const std::string& root, size_t at) {
  int64_t correction = 1;
  if (r.name().find("correction") != std::string::npos) {
    correction = r.integer(9, 1, "correction");
  } else {
    correction = r.truth(r.name().find("dim") != std::string::npos ? 2 : 1, true);
  }
  r.require(correction == 0 || correction == 1, "another correction");
  std::string op = root == "var" ? (correction ? "var_unbiased" : "var") : (correction ? "std" : "std_biased");
  reduce(r, op, at, 3);
}

void vector_norm(Reader& r) {
  double order = r.number(1, 2);
  r.require(order == 1 || order == 2, "of another order");
  int x = r.tensor(0);
  std::vector<int> dims = dims_of(r, x, 2);
  bool keep = r.truth(3, false, "keepdim");
  if (static_cast<int>(dims.size()) < r.rank(x)) {
    return r.result_is(reduced(r, order == 1 ? "l1_norm" : "l2_norm", x, dims, keep));
  }
  int total = reduced(r, "sum", r.pointwise(order == 1 ? "abs" : "square", {x}), dims, keep);
  r.result_is(order == 1 ? total : r.pointwise("sqrt", {total}));
}

ReadRule along(const std::string& op) {
  return [op](Reader& r) {
    int x = r.tensor(0);
    r.require(r.rank(x) > 0, "of a single number");
    Node node = r.compute(op, {x});
    node.dims = {r.dim_of(x, r.integer(1, -1))};
    r.result(std::move(node));
  };
}

void last_norm(Reader& r, const std::string& op) {
  int x = r.tensor(0);
  size_t count = r.argument(1)->list.size();
  std::vector<double> eps = {
      r.number(op == "layer_norm" ? 4 : 3, op == "layer_norm" ? 1e-5 : std::numeric_limits<float>::epsilon())};
  Node node = r.compute(op, {x}, eps);
  Shape inner(r.shape(x).end() - static_cast<std::ptrdiff_t>(count), r.shape(x).end());
  for (size_t i = 0; i < count; ++i) node.dims.push_back(r.rank(x) - static_cast<int>(count - i));
  bool bias = op == "layer_norm" && r.has(3);
  r.require(r.has(2) || !bias, "a bias without a weight");
  node.ints = {{"weight", r.has(2)}, {"bias", bias}};
  if (r.has(2)) node.operands.push_back(r.weight(2, inner));
  if (bias) node.operands.push_back(r.weight(3, inner));
  r.result(std::move(node));
}

void channel_norm(Reader& r, bool instance) {
  int x = r.tensor(0);
  r.require(r.rank(x) >= 2, "of less than two dimensions");
  size_t weight = instance ? 1 : 2;
  r.require(!instance || r.truth(5, true), "with running statistics");
  Node node = r.compute(instance ? "instance_norm" : "group_norm", {x}, {r.number(instance ? 7 : 4, 1e-5)});
  node.ints["groups"] = instance ? 0 : r.integer(1, 1);
  for (int i = 1; i < r.rank(x); ++i) node.dims.push_back(i);
  r.require(r.has(weight) == r.has(weight + 1), "one of weight and bias");
  Shape viewed(static_cast<size_t>(r.rank(x)) - 1);
  viewed[0] = r.shape(x)[1];
  node.ints["weight"] = node.ints["bias"] = r.has(weight);
  if (r.has(weight)) {
    node.operands.push_back(r.weight(weight, viewed));
    node.operands.push_back(r.weight(weight + 1, viewed));
  }
  r.result(std::move(node));
}

// Losses: of several tensors, then the mean or the sum.
void loss(Reader& r, const std::string& op, size_t tensors, size_t reduction, std::vector<double> numbers = {}) {
  std::vector<int> operands;
  for (size_t i = 0; i < tensors; ++i) operands.push_back(r.tensor(i));
  Node node = r.compute(op, operands, std::move(numbers));
  int64_t how = r.integer(reduction, 1);
  r.require(how == 1 || how == 2, "without a reduction");
  node.ints["sum"] = how == 2;
  bool rows = node.op->work == graphs::Work::kRow;
  r.require(!rows || r.rank(operands[0]) == 2, "of another rank");
  for (size_t i = 1; i < tensors; ++i) {
    bool classes = r.graph()[operands[i]].type == graphs::Type::kInt64;
    r.require(rows && classes ? r.rank(operands[i]) == 1 : r.shape(operands[i]) == r.shape(operands[0]),
              "of other shapes");
  }
  if (rows) node.dims = {1};
  r.result(std::move(node));
}

void cross_entropy(Reader& r) {
  r.require(!r.has(2) && r.integer(4, -100) == -100, "with weights");
  r.require(r.graph()[r.tensor(1)].type == graphs::Type::kInt64, "with probabilities");
  double smoothing = r.number(5, 0);
  if (smoothing == 0) return loss(r, "cross_entropy", 2, 3);
  loss(r, "cross_entropy_smoothed", 2, 3, {smoothing});
}

void triplet(Reader& r) {
  r.require(r.number(4, 2) == 2 && !r.truth(6, false), "of another distance");
  loss(r, "triplet_margin_loss", 3, 7, {r.number(3, 1)});
}

void cosine(Reader& r) {
  int x = r.tensor(0), y = r.tensor(1);
  r.require(r.shape(x) == r.shape(y) && r.rank(x) > 1, "of other shapes");
  Node node = r.compute("cosine_similarity", {x, y});
  node.dims = {r.dim_of(x, r.integer(2, 1))};
  node.ints["keepdim"] = 0;
  r.result(std::move(node));
}

const std::map<std::string, ReadRule>& row_rules() {
  static const std::map<std::string, ReadRule> all = {
      {"sum", [](Reader& r) { reduce(r, "sum", 99, 99); }},
      {"mean", [](Reader& r) { reduce(r, "mean", 99, 99); }},
      {"max", [](Reader& r) { reduce(r, "amax", 99, 99); }},
      {"min", [](Reader& r) { reduce(r, "amin", 99, 99); }},
      {"prod", [](Reader& r) { reduce(r, "prod", 99, 99); }},
      {"sum.dim_IntList", reducing("sum")},
      {"mean.dim", reducing("mean")},
      {"amax", reducing("amax")},
      {"amin", reducing("amin")},
      {"prod.dim_int", reducing("prod")},
      {"logsumexp", reducing("logsumexp")},
      {"argmax", reducing("argmax")},
      {"argmin", reducing("argmin")},
      {"max.dim", picking("max_dim", "argmax")},
      {"min.dim", picking("min_dim", "argmin")},
      {"var", [](Reader& r) { deviation(r, "var", 99); }},
      {"std", [](Reader& r) { deviation(r, "std", 99); }},
      {"var.dim", [](Reader& r) { deviation(r, "var", 1); }},
      {"std.dim", [](Reader& r) { deviation(r, "std", 1); }},
      {"var.correction", [](Reader& r) { deviation(r, "var", 1); }},
      {"std.correction", [](Reader& r) { deviation(r, "std", 1); }},
      {"linalg_vector_norm", vector_norm},
      {"softmax.int", along("softmax")},
      {"log_softmax.int", along("log_softmax")},
      {"cumsum", along("cumsum")},
      {"cumprod", along("cumprod")},
      {"cummax", along("cummax")},
      {"cummin", along("cummin")},
      {"layer_norm", [](Reader& r) { last_norm(r, "layer_norm"); }},
      {"rms_norm", [](Reader& r) { last_norm(r, "rms_norm"); }},
      {"group_norm", [](Reader& r) { channel_norm(r, false); }},
      {"instance_norm", [](Reader& r) { channel_norm(r, true); }},
      {"cross_entropy_loss", cross_entropy},
      {"nll_loss_nd", [](Reader& r) { loss(r, "nll_loss", 2, 3); }},
      {"nll_loss", [](Reader& r) { loss(r, "nll_loss", 2, 3); }},
      {"multi_margin_loss", [](Reader& r) { loss(r, "multi_margin_loss", 2, 5); }},
      {"triplet_margin_loss", triplet},
      {"cosine_similarity", cosine},
      {"mse_loss", [](Reader& r) { loss(r, "mse_loss", 2, 2); }},
      {"l1_loss", [](Reader& r) { loss(r, "l1_loss", 2, 2); }},
      {"smooth_l1_loss", [](Reader& r) { loss(r, "smooth_l1_loss", 2, 2, {r.number(3, 1)}); }},
      {"huber_loss", [](Reader& r) { loss(r, "huber_loss", 2, 2, {r.number(3, 1)}); }},
      {"kl_div",
       [](Reader& r) {
         r.require(!r.truth(9, false, "log_target"), "of logarithms");
         loss(r, "kl_div", 2, 2);
       }},
      {"soft_margin_loss", [](Reader& r) { loss(r, "soft_margin_loss", 2, 2); }},
      {"binary_cross_entropy",
       [](Reader& r) {
         r.require(!r.has(2), "with weights");
         loss(r, "binary_cross_entropy", 2, 3);
       }},
      {"binary_cross_entropy_with_logits",
       [](Reader& r) {
         r.require(!r.has(2) && !r.has(3), "with weights");
         loss(r, "binary_cross_entropy_with_logits", 2, 4);
       }},
      {"poisson_nll_loss",
       [](Reader& r) {
         r.require(r.truth(2, true) && !r.truth(3, false), "in another form");
         loss(r, "poisson_nll_loss", 2, 5);
       }},
  };
  return all;
}

}  // namespace

int reduced(GraphReader& r, const std::string& op, int x, std::vector<int> dims, bool keep) {
  static const std::vector<std::string> kSimple = {"sum", "mean", "amax", "amin", "prod", "max_dim", "min_dim"};
  bool simple = std::find(kSimple.begin(), kSimple.end(), op) != kSimple.end();
  Shape before = r.shape(x);
  std::vector<int> left = dims;
  if (simple) std::erase_if(left, [&](int dim) { return before[static_cast<size_t>(dim)].is_one(); });
  bool neighbours = dims.empty() || dims.back() - dims.front() + 1 == static_cast<int>(dims.size());
  if (!simple && !neighbours) {  // They are brought together first.
    Node moved = r.compute("permute", {x});
    for (int i = 0; i < r.rank(x); ++i) {
      if (std::find(dims.begin(), dims.end(), i) == dims.end()) moved.dims.push_back(i);
    }
    moved.dims.insert(moved.dims.end(), dims.begin(), dims.end());
    for (int dim : moved.dims) moved.shape.push_back(before[static_cast<size_t>(dim)]);
    std::vector<int> last;
    for (size_t i = 0; i < dims.size(); ++i) last.push_back(r.rank(x) - static_cast<int>(dims.size() - i));
    return r.viewed(reduced(r, op, r.add(std::move(moved)), last, false), without(before, dims, keep));
  }
  // Dimensions that are no neighbours, one run after the other.
  while (!left.empty()) {
    std::vector<int> run = {left.back()};
    left.pop_back();
    while (!left.empty() && left.back() == run[0] - 1) {
      run.insert(run.begin(), left.back());
      left.pop_back();
    }
    bool last = left.empty() && run.size() == dims.size();
    Node node = r.compute(op, {x});
    node.dims = run;
    node.ints["keepdim"] = last ? keep : 1;
    node.shape = without(r.shape(x), run, last ? keep : true);
    if (op == "argmax" || op == "argmin") node.type = graphs::Type::kInt64;
    x = r.add(std::move(node));
    if (last) return x;
  }
  Shape wanted = without(before, dims, keep);
  return r.viewed(x, wanted);
}

bool read_rows(GraphReader& reader) {
  auto it = row_rules().find(reader.name());
  if (it == row_rules().end()) return false;
  it->second(reader);
  return true;
}

}  // namespace tritonrl
