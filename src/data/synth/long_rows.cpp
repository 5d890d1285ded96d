// SPDX-License-Identifier: Apache-2.0
// Rows that are too long for the registers of one program: operators along them become reductions, each a pass over
// blocks, and pointwise operators between those; all of them in one kernel.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

class Parts {
 public:
  Parts(TensorGraph& graph, std::vector<int>& from, const Node& node)
      : graph_(graph), from_(from), node_(node), x_(node.operands[0]) {
    shape_ = graph[x_].shape;
    dims_ = node.dims;
  }

  // The last part, which is not added yet.
  std::optional<Node> run() {
    const std::string& name = node_.op->name;
    if (name == "l1_norm") return result("sum", pointwise("abs", {x_}));
    if (name == "l2_norm" || name == "frobenius_norm")
      return ended("sqrt", {add(result("sum", pointwise("square", {x_})))});
    if (name == "softmax") return ended("div", soft(x_));
    if (name == "softmin") return ended("div", soft(pointwise("neg", {x_})));
    if (name == "logsumexp" || name == "log_softmax") return logarithm(name == "log_softmax");
    if (name.rfind("var", 0) == 0 || name.rfind("std", 0) == 0) return spread(name);
    if (name == "layer_norm" || name == "rms_norm" || name == "rms_normalize") return affine(name == "layer_norm");
    if (name == "group_norm" || name == "instance_norm") return affine(true);
    if (name == "center") return ended("sub", {x_, reduced("mean", x_)});
    if (name == "mean_abs_normalize") return ended("div", {x_, reduced("mean", pointwise("abs", {x_}))});
    if (name == "normalize" || name == "normalize_l1") {
      int total = reduced("sum", pointwise(name == "normalize" ? "square" : "abs", {x_}));
      if (name == "normalize") total = pointwise("sqrt", {total});
      return ended("div", {x_, pointwise("clamp_min", {total}, {1e-12})});
    }
    return std::nullopt;
  }

 private:
  Node made(const char* op, std::vector<int> operands, Shape shape, std::vector<double> numbers = {}) const {
    Node out;
    out.op = find_operator(op);
    out.operands = std::move(operands);
    out.shape = std::move(shape);
    out.numbers = std::move(numbers);
    return out;
  }
  int add(Node part) {
    from_.push_back(-1);
    return graph_.add(std::move(part));
  }
  int pointwise(const char* op, std::vector<int> operands, std::vector<double> numbers = {}) {
    Shape shape = graph_[operands[0]].shape;
    bool of_rows = by_groups();
    for (int operand : operands) {
      Shape before = shape;
      CHECK(broadcast(before, graph_[operand].shape, shape)) << op;
      of_rows &= graph_[operand].ints.count(kRowNumber) > 0;
    }
    Node part = made(op, std::move(operands), shape, std::move(numbers));
    if (of_rows) part.ints[kRowNumber] = 1;
    return add(std::move(part));
  }
  bool by_groups() const { return node_.ints.count("groups") > 0; }
  Node reduction(const char* op, int x, Shape shape, bool keep) const {
    Node part = made(op, {x}, std::move(shape));
    part.dims = dims_;
    part.ints["keepdim"] = keep;
    if (by_groups()) part.ints = {{"keepdim", 1}, {"groups", node_.ints.at("groups")}, {kRowNumber, 1}};
    return part;
  }
  // One number of each row, for use along the row: its dimensions are 1. Of groups of channels, all dimensions are.
  int reduced(const char* op, int x) {
    Shape shape = by_groups() ? Shape(shape_.size(), Dim()) : graph_[x].shape;
    for (int dim : dims_) shape[static_cast<size_t>(dim)] = Dim();
    return add(reduction(op, x, std::move(shape), true));
  }
  // The same as the result is shaped.
  Node result(const char* op, int x) const {
    Node part = reduction(op, x, node_.shape, node_.ints.count("keepdim") && node_.ints.at("keepdim"));
    part.type = node_.type;
    return part;
  }
  Node ended(const char* op, std::vector<int> operands) const {
    Node out = made(op, std::move(operands), node_.shape);
    out.type = node_.type;
    return out;
  }

  std::vector<int> soft(int x) {
    int weights = pointwise("exp", {pointwise("sub", {x, reduced("amax", x)})});
    return {weights, reduced("sum", weights)};
  }

  Node logarithm(bool of_softmax) {
    int top = reduced("amax", x_), shifted = pointwise("sub", {x_, top}), weights = pointwise("exp", {shifted});
    if (of_softmax) return ended("sub", {shifted, pointwise("log", {reduced("sum", weights)})});
    int total = pointwise("log", {add(result("sum", weights))});
    return ended("add", {total, graph_[top].shape == node_.shape ? top : add(made("view", {top}, node_.shape))});
  }

  Dim length() const {
    Shape along;
    for (int dim : dims_) along.push_back(shape_[static_cast<size_t>(dim)]);
    return product(along);
  }

  Node spread(const std::string& name) {
    int squares = pointwise("square", {pointwise("sub", {x_, reduced("mean", x_)})});
    bool root = name[0] == 's';
    if (name == "var" || name == "std_biased") {
      Node mean = result("mean", squares);
      return root ? ended("sqrt", {add(std::move(mean))}) : mean;
    }
    Node part = made("scale", {add(result("sum", squares))}, node_.shape, {-1.0});
    part.module_dims = {scaled_size(length(), 1, -1, 1)};
    part.type = node_.type;
    return root ? ended("sqrt", {add(std::move(part))}) : part;
  }

  // (x - mean) / sqrt(variance + eps), or x / sqrt(mean square + eps); times the weight, plus the bias.
  Node affine(bool centred) {
    int above = centred ? pointwise("sub", {x_, reduced("mean", x_)}) : x_;
    int below = reduced("mean", pointwise("square", {above}));
    Node out = ended("div", {above, pointwise("sqrt", {pointwise("add_scalar", {below}, node_.numbers)})});
    for (size_t i = 1; i < node_.operands.size(); ++i) {
      Node& parameter = graph_[node_.operands[i]];
      Shape wanted = parameter.shape;
      while (parameter.shape.size() > 1 && parameter.shape.back().is_one()) parameter.shape.pop_back();
      parameter.draw = "given";  // No place holder of an operator's template.
      int seen = node_.operands[i];
      if (!(parameter.shape == wanted)) seen = add(made("view", {seen}, wanted));
      out = ended(i == 1 ? "mul" : "add", {add(std::move(out)), seen});
    }
    return out;
  }

  TensorGraph& graph_;
  std::vector<int>& from_;
  const Node node_;
  const int x_;
  Shape shape_;
  std::vector<int> dims_;
};

bool keeps_order(const std::string& op) {
  return op == "argmax" || op == "argmin" || op == "cumsum" || op == "cumprod";
}

int64_t block_of(const Style& style) { return style.row_block > 0 ? style.row_block : style.block; }

// One pass over the row, block by block: opens the loop, up to the place of the block's elements. Returns the name of
// the block's first position.
std::string open_pass(KernelText& kernel, const RowSpace& space, const std::string& block) {
  std::string start = kernel.fresh("start");
  kernel.open(cat("for ", start, " in range(0, ", kernel.row_count, ", ", block, "):"));
  kernel.line(cat("cols = ", start, " + tl.arange(0, ", block, ")"));
  kernel.line("mask = cols < " + kernel.row_count);
  set_row_place(kernel, space, false);
  return start;
}

// The row of a program, and where it lies.
void begin_rows(KernelText& kernel, const RowSpace& space) {
  kernel.row_count = kernel.size(space.length());
  kernel.head("row", "tl.program_id(0)");
  kernel.row_mask = "mask";
  kernel.row_index = "cols";
  set_row_place(kernel, space, false);
}

// Several numbers of each row one after the other, each a pass over it, and a last pass for what has the row's length.
std::string passes_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const RowSpace& space = plan.space;
  KernelText kernel(file, index, kernel_name(file, plan, "row_kernel"));
  std::string block = kernel.constant(block_name(file.style), cat(block_of(file.style)));
  begin_rows(kernel, space);
  const Place outside = kernel.row_place;
  int sums = 0;
  auto stored = [&](int id) { return std::find(plan.stores.begin(), plan.stores.end(), id) != plan.stores.end(); };
  bool last_pass = false;
  for (int id : plan.members) {
    const Node& node = kernel.graph()[id];
    bool scalar = node.ints.count(kRowNumber) > 0 || !(node.shape == space.shape);
    if (!scalar) {
      last_pass |= stored(id);
      continue;
    }
    if (node.op->work == Work::kRow) {
      const std::string& op = node.op->name;
      bool product = op == "prod", top = node.op->fill == "float(\"-inf\")", bottom = node.op->fill == "float(\"inf\")";
      std::string acc = ++sums == 1 ? "acc" : cat("acc", sums);
      kernel.comment(op + " along the row");
      kernel.line(cat(acc, " = tl.full((", block, ",), ", node.op->fill, ", tl.float32)"));
      open_pass(kernel, space, block);
      std::string x = kernel.value(node.operands[0], kernel.row_place);
      std::string m = cat("tl.where(mask, ", x, ", ", node.op->fill, ")");
      kernel.line(cat(acc, " = ",
                      top      ? cat("tl.maximum(", acc, ", ", m, ")")
                      : bottom ? cat("tl.minimum(", acc, ", ", m, ")")
                               : cat(acc, product ? " * " : " + ", m)));
      kernel.close_pass();
      if (product) kernel.helper("multiplied", "a, b", "a * b");
      kernel.row_place = outside;
      std::string text = replace_all(replace_all(node.op->triton, "{m}", acc), "{ax}", kernel.ax);
      kernel.set(id, kernel.assign(top            ? "top"
                                   : bottom       ? "bottom"
                                   : op == "mean" ? "mean"
                                                  : "total",
                                   replace_all(text, "{n}", kernel.row_count)));
    }
    Place place;
    place.at.resize(node.shape.size());
    if (node.ints.count(kRowNumber) == 0) place = row_number_place(kernel, plan, node, "");
    std::string variable = kernel.value(id, place);
    if (stored(id)) kernel.store(id, place.flat, variable, "");
  }
  if (last_pass) {
    open_pass(kernel, space, block);
    for (int id : plan.members) {
      bool full = kernel.graph()[id].shape == space.shape && kernel.graph()[id].ints.count(kRowNumber) == 0;
      if (full && stored(id)) kernel.store(id, kernel.row_place.flat, kernel.value(id, kernel.row_place), "mask");
    }
    kernel.close();
  }
  launch(kernel, space.whole() ? "(1,)" : cat("(", shape_text({space.rows()}), ",)"), host, 8);
  return kernel.text();
}

}  // namespace

std::optional<Node> long_row_parts(TensorGraph& graph, std::vector<int>& from, const Node& node) {
  return Parts(graph, from, node).run();
}

bool loopable(const Operator& op) {
  if (keeps_order(op.name)) return true;
  return op.scalar_rows && op.arity == 1 && op.triton.find('\n') == std::string::npos &&
         op.triton.find("{m} * {m}") == std::string::npos && op.triton.find("abs") == std::string::npos;
}

bool sums_up(const Operator& op) { return loopable(op) && !keeps_order(op.name); }

bool takes_long_rows(const Operator& op) {
  static const std::set<std::string> kParts = {
      "l1_norm",      "l2_norm",    "softmax",      "softmin",       "logsumexp", "log_softmax",        "var",
      "std",          "layer_norm", "rms_norm",     "rms_normalize", "center",    "mean_abs_normalize", "normalize",
      "normalize_l1", "group_norm", "instance_norm"};
  return loopable(op) || kParts.count(op.name) > 0;
}

std::string long_row_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& anchor = file.plan.graph[plan.anchor];
  const std::string& op = anchor.op->name;
  if (sums_up(*anchor.op)) return passes_kernel(file, index, host);
  const RowSpace& space = plan.space;
  bool index_of = op == "argmax" || op == "argmin";
  KernelText kernel(file, index, kernel_name(file, plan, "row_kernel"));
  std::string block = kernel.constant(block_name(file.style), cat(block_of(file.style)));
  begin_rows(kernel, space);
  Place outside = kernel.row_place;
  kernel.comment("the row in blocks");
  bool product = op == "cumprod";
  if (index_of) {
    kernel.line("best = " + anchor.op->fill);
    kernel.line("at = 0");
  } else {
    kernel.line(product ? "carry = 1.0" : "carry = 0.0");
  }
  const std::string start = open_pass(kernel, space, block);
  std::string x = kernel.value(anchor.operands[0], kernel.row_place);
  std::string m = kernel.assign("masked", cat("tl.where(mask, ", x, ", ", anchor.op->fill, ")"));
  if (product) kernel.helper("multiplied", "a, b", "a * b");
  std::string whole =
      product ? cat("tl.reduce(", m, ", axis=0, combine_fn=multiplied)") : cat("tl.sum(", m, ", axis=0)");
  if (index_of) {
    std::string extreme = kernel.assign("extreme", cat(op == "argmax" ? "tl.max(" : "tl.min(", m, ", axis=0)"));
    std::string better = cat(extreme, op == "argmax" ? " > best" : " < best");
    kernel.line(cat("at = tl.where(", better, ", tl.", op, "(", m, ", axis=0) + ", start, ", at)"));
    kernel.line(cat("best = tl.where(", better, ", ", extreme, ", best)"));
  } else {
    std::string sign = product ? " * " : " + ";
    std::string out = kernel.assign("scanned", cat("tl.", op, "(", m, ", axis=0)", sign, "carry"));
    kernel.store(plan.anchor, kernel.row_place.flat, out, "mask");
    kernel.line(cat("carry = carry", sign, whole));
  }
  kernel.close();
  kernel.row_place = outside;
  if (index_of) {
    kernel.set(plan.anchor, "at");
    store_rows(kernel, plan, false);
  }
  launch(kernel, space.whole() ? "(1,)" : cat("(", shape_text({space.rows()}), ",)"), host);
  return kernel.text();
}

}  // namespace tritonrl::graphs
