// SPDX-License-Identifier: Apache-2.0
// Rows that are too long for the registers of one program: operators along them become reductions, each a loop over
// blocks, and pointwise operators between those.
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
    if (name == "l1_norm") return last(reduced("sum", pointwise("abs", {x_})));
    if (name == "l2_norm") return last(pointwise("sqrt", {reduced("sum", pointwise("square", {x_}))}));
    if (name == "softmax") return ended("div", soft(x_));
    if (name == "softmin") return ended("div", soft(pointwise("neg", {x_})));
    if (name == "logsumexp" || name == "log_softmax") return logarithm(name == "log_softmax");
    if (name.rfind("var", 0) == 0 || name.rfind("std", 0) == 0) return spread(name);
    if (name == "layer_norm" || name == "rms_norm") return normed(x_, name == "layer_norm");
    if (name == "group_norm" || name == "instance_norm") return by_groups();
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
    for (int operand : operands) {
      Shape before = shape;
      CHECK(broadcast(before, graph_[operand].shape, shape)) << op;
    }
    return add(made(op, std::move(operands), shape, std::move(numbers)));
  }
  int reduced(const char* op, int x) {
    Shape shape = graph_[x].shape;
    for (int dim : dims_) shape[static_cast<size_t>(dim)] = Dim();
    Node part = made(op, {x}, shape);
    part.dims = dims_;
    part.ints["keepdim"] = 1;
    return add(std::move(part));
  }
  int viewed(int x, Shape shape) { return add(made("view", {x}, std::move(shape))); }

  // The node's result is that of `part`, seen in the node's shape.
  Node last(int part) {
    Node out = made("view", {part}, node_.shape);
    out.type = node_.type;
    return out;
  }
  Node ended(const char* op, std::vector<int> operands) {
    Node out = made(op, std::move(operands), node_.shape);
    out.type = node_.type;
    return out;
  }

  std::vector<int> soft(int x) {
    int weights = pointwise("exp", {pointwise("sub", {x, reduced("amax", x)})});
    return {weights, reduced("sum", weights)};
  }

  Node logarithm(bool of_softmax) {
    int top = reduced("amax", x_), shifted = pointwise("sub", {x_, top});
    int total = pointwise("log", {reduced("sum", pointwise("exp", {shifted}))});
    if (of_softmax) return ended("sub", {shifted, total});
    return last(pointwise("add", {total, top}));
  }

  Dim length() const {
    Shape along;
    for (int dim : dims_) along.push_back(shape_[static_cast<size_t>(dim)]);
    return product(along);
  }

  Node spread(const std::string& name) {
    int squares = pointwise("square", {pointwise("sub", {x_, reduced("mean", x_)})});
    int out = -1;
    if (name == "var" || name == "std_biased") {
      out = reduced("mean", squares);
    } else {
      int sum = reduced("sum", squares);
      Node part = made("scale", {sum}, graph_[sum].shape, {-1.0});
      part.module_dims = {scaled_size(length(), 1, -1, 1)};
      out = add(std::move(part));
    }
    return last(name[0] == 's' ? pointwise("sqrt", {out}) : out);
  }

  // (x - mean) / sqrt(variance + eps), or x / sqrt(mean square + eps).
  std::pair<int, int> quotient(int x, bool centred) {
    int above = centred ? pointwise("sub", {x, reduced("mean", x)}) : x;
    int below = reduced("mean", pointwise("square", {above}));
    return {above, pointwise("sqrt", {pointwise("add_scalar", {below}, node_.numbers)})};
  }

  Node normed(int x, bool centred) {
    auto [above, below] = quotient(x, centred);
    return affine(pointwise("div", {above, below}));
  }

  // Times the weight, plus the bias.
  Node affine(int out) {
    if (node_.operands.size() == 1) return last(out);
    for (size_t i = 1; i < node_.operands.size(); ++i) {
      Node& parameter = graph_[node_.operands[i]];
      Shape wanted = parameter.shape;
      while (parameter.shape.size() > 1 && parameter.shape.back().is_one()) parameter.shape.pop_back();
      parameter.draw = "given";  // No place holder of an operator's template.
      int seen = parameter.shape == wanted ? node_.operands[i] : viewed(node_.operands[i], wanted);
      out = pointwise(i == 1 ? "mul" : "add", {out, seen});
    }
    return last(out);
  }

  Node by_groups() {
    int64_t groups = node_.ints.at("groups");
    Dim channels = shape_[1], each = groups == 0 ? Dim() : scaled_size(channels, 1, 0, groups);
    Shape rest(shape_.begin() + 2, shape_.end());
    rest.insert(rest.begin(), groups == 0 ? Dim() : groups == 1 ? channels : each);
    int rows = viewed(x_, {shape_[0], groups == 0 ? channels : number(groups), product(rest)});
    dims_ = {2};
    auto [above, below] = quotient(rows, true);
    return affine(viewed(pointwise("div", {above, below}), shape_));
  }

  TensorGraph& graph_;
  std::vector<int>& from_;
  const Node node_;
  const int x_;
  Shape shape_;
  std::vector<int> dims_;
};

}  // namespace

std::optional<Node> long_row_parts(TensorGraph& graph, std::vector<int>& from, const Node& node) {
  return Parts(graph, from, node).run();
}

bool loopable(const Operator& op) {
  if (op.name == "argmax" || op.name == "argmin" || op.name == "cumsum" || op.name == "cumprod") return true;
  return op.scalar_rows && op.arity == 1 && op.triton.find('\n') == std::string::npos &&
         op.triton.find("{m} * {m}") == std::string::npos && op.triton.find("abs") == std::string::npos;
}

std::string long_row_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& anchor = file.plan.graph[plan.anchor];
  const std::string& op = anchor.op->name;
  const RowSpace& space = plan.space;
  bool index_of = op == "argmax" || op == "argmin", scan = op == "cumsum" || op == "cumprod";
  KernelText kernel(file, index, kernel_name(file, plan, "row_kernel"));
  std::string block = kernel.constant(block_name(file.style), cat(file.style.block));
  kernel.row_count = kernel.size(space.length());
  kernel.head("row", "tl.program_id(0)");
  kernel.row_mask = "mask";
  kernel.row_index = "cols";
  set_row_place(kernel, space, false);
  Place outside = kernel.row_place;
  kernel.comment("the row in blocks");
  bool product = op == "prod" || op == "cumprod";
  if (index_of) {
    kernel.line("best = " + anchor.op->fill);
    kernel.line("at = 0");
  } else if (scan) {
    kernel.line(product ? "carry = 1.0" : "carry = 0.0");
  } else {
    kernel.line(cat("acc = tl.full((", block, ",), ", anchor.op->fill, ", tl.float32)"));
  }
  std::string start = kernel.fresh("start");
  kernel.open(cat("for ", start, " in range(0, ", kernel.row_count, ", ", block, "):"));
  kernel.line(cat("cols = ", start, " + tl.arange(0, ", block, ")"));
  kernel.line("mask = cols < " + kernel.row_count);
  set_row_place(kernel, space, false);
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
  } else if (scan) {
    std::string sign = product ? " * " : " + ";
    std::string out = kernel.assign("scanned", cat("tl.", op, "(", m, ", axis=0)", sign, "carry"));
    kernel.store(plan.anchor, kernel.row_place.flat, out, "mask");
    kernel.line(cat("carry = carry", sign, whole));
  } else {
    bool top = op == "amax" || op == "max_dim", bottom = op == "amin" || op == "min_dim";
    kernel.line(cat("acc = ", top      ? cat("tl.maximum(acc, ", m, ")")
                              : bottom ? cat("tl.minimum(acc, ", m, ")")
                                       : cat("acc", product ? " * " : " + ", m)));
  }
  kernel.close();
  kernel.row_place = outside;
  if (!scan) {
    std::string text = index_of ? "at" : replace_all(anchor.op->triton, "{m}", "acc");
    text = replace_all(replace_all(text, "{ax}", kernel.ax), "{n}", kernel.row_count);
    kernel.set(plan.anchor, index_of ? "at" : kernel.assign("total", text));
    store_rows(kernel, plan, false);
  }
  launch(kernel, space.whole() ? "(1,)" : cat("(", shape_text({space.rows()}), ",)"), host);
  return kernel.text();
}

}  // namespace tritonrl::graphs
