// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/synth/operators.h"
#include "data/synth/tensor_graph.h"
#include "data/tasks/op_graph.h"

namespace tritonrl::graphs {

namespace {

using Id = OpGraph::NodeId;

// Operators that differ in constants, in layout or in the way they are written.
std::string plain_name(const std::string& name) {
  static const std::map<std::string, std::string> same = {{"sub_scalar", "add_scalar"},
                                                          {"div_scalar", "mul_scalar"},
                                                          {"scale", "mul_scalar"},
                                                          {"clamp_min", "clamp"},
                                                          {"clamp_max", "clamp"},
                                                          {"hardtanh", "clamp"},
                                                          {"relu6", "clamp"},
                                                          {"gelu_tanh", "gelu"},
                                                          {"softplus_beta", "softplus"},
                                                          {"cube", "pow_scalar"},
                                                          {"pow_integer", "pow_scalar"},
                                                          {"lt_scalar", "gt_scalar"},
                                                          {"le_scalar", "gt_scalar"},
                                                          {"ge_scalar", "gt_scalar"},
                                                          {"le", "gt"},
                                                          {"ge", "gt"},
                                                          {"lt", "gt"},
                                                          {"max_dim", "amax"},
                                                          {"min_dim", "amin"},
                                                          {"frobenius_norm", "l2_norm"},
                                                          {"spatial_mean", "mean"},
                                                          {"spatial_sum", "sum"},
                                                          {"adaptive_avg_pool1d", "mean"},
                                                          {"adaptive_avg_pool2d", "mean"},
                                                          {"adaptive_avg_pool3d", "mean"},
                                                          {"adaptive_max_pool1d", "amax"},
                                                          {"adaptive_max_pool2d", "amax"},
                                                          {"adaptive_max_pool3d", "amax"},
                                                          {"var_unbiased", "var"},
                                                          {"std_biased", "std"},
                                                          {"bmm", "matmul"},
                                                          {"matmul_tn", "matmul"},
                                                          {"matmul_nt", "matmul"},
                                                          {"matmul_tt", "matmul"},
                                                          {"batched_matmul", "matmul"},
                                                          {"batched_matmul_nt", "matmul"},
                                                          {"shared_matmul", "matmul"},
                                                          {"depthwise_conv1d", "conv1d"},
                                                          {"depthwise_conv2d", "conv2d"},
                                                          {"pointwise_conv2d", "conv2d"},
                                                          {"batch_norm_plain", "batch_norm"},
                                                          {"narrow", "slice"},
                                                          {"stack", "cat"},
                                                          {"chunk_glu", "slice"},
                                                          {"part", "slice"},
                                                          {"cross_entropy_smoothed", "cross_entropy"}};
  auto it = same.find(name);
  return it == same.end() ? name : it->second;
}

bool passes_through(const std::string& name) {
  static const std::vector<std::string> names = {"transpose",  "permute",    "flatten",    "view",
                                                 "unsqueeze",  "squeeze",    "expand",     "dropout",
                                                 "to_float32", "to_float16", "to_bfloat16"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Outliner {
 public:
  explicit Outliner(const TensorGraph& graph) : graph_(graph) {}

  std::string run() {
    std::vector<Id> ends = walk();
    out_.set_output(ends.size() == 1 ? ends[0] : out_.add("tuple", {}, ends));
    return "outline:" + out_.hash().substr(6);
  }

  // Of what the outputs need.
  std::set<std::string> operators() {
    std::set<std::string> names;
    std::set<Id> seen;
    for (std::vector<Id> open = walk(); !open.empty();) {
      Id id = open.back();
      open.pop_back();
      auto it = made_.find(id);
      if (it == made_.end() || !seen.insert(id).second) continue;
      if (it->second.first != "fill") names.insert(it->second.first);  // A constant.
      open.insert(open.end(), it->second.second.begin(), it->second.second.end());
    }
    return names;
  }

 private:
  // The outputs.
  std::vector<Id> walk() {
    for (const Node& node : graph_.nodes) {
      if (node.kind == Node::Kind::kCompute) {
        ids_.push_back(compute(node));
      } else {
        bool input = node.kind == Node::Kind::kInput;
        ids_.push_back(input ? out_.add_input("") : -1);  // Parameters: where they are read.
      }
    }
    std::vector<Id> ends;
    for (int output : graph_.outputs) ends.push_back(id(output));
    return ends;
  }

  Id id(int node) {
    Id& known = ids_[static_cast<size_t>(node)];
    if (known < 0) known = out_.add_parameter("");
    return known;
  }

  // An operator, once for each time it is applied to the same.
  Id add(const std::string& op, std::vector<Id> operands, bool commutative = false) {
    if (op == "mul" && operands.size() == 2) {
      if (operands[0] == operands[1]) return add("square", {operands[0]});
      for (size_t i : {0, 1}) {  // x * sigmoid(x)
        auto it = sigmoids_.find(operands[i]);
        if (it != sigmoids_.end() && it->second == operands[1 - i]) return add("silu", {operands[1 - i]});
      }
    }
    if (op == "sqrt") {  // sqrt(sum(x * x))
      auto sum = made_.find(operands[0]);
      auto square = sum != made_.end() && sum->second.first == "sum" ? made_.find(sum->second.second[0]) : made_.end();
      if (square != made_.end() && square->second.first == "square") return add("l2_norm", square->second.second);
    }
    std::string key = op;
    std::vector<Id> order = operands;
    if (commutative) std::sort(order.begin(), order.end());
    for (Id operand : order) key += cat(" ", operand);
    auto [it, fresh] = known_.try_emplace(key, -1);
    if (fresh) made_[it->second = out_.add(op, {}, operands, commutative)] = {op, operands};
    if (op == "sigmoid") sigmoids_[it->second] = operands[0];
    return it->second;
  }

  Id compute(const Node& node) {
    const std::string name = plain_name(node.op->name), &family = node.op->family;
    Id x = node.operands.empty() ? -1 : id(node.operands[0]);
    if (passes_through(name)) return x;
    auto y = [&] { return id(node.operands.at(1)); };
    if (name == "gate") return add("mul", {x, add("sigmoid", {y()})}, true);
    if (name == "silu_mul") return add("mul", {add("silu", {x}), y()}, true);
    if (name == "squared_difference") return add("square", {add("sub", {x, y()})});
    if (name == "pairwise_dot") return add("sum", {add("mul", {x, y()}, true)});
    if (name == "center") return add("sub", {x, add("mean", {x})});
    if (name == "softmin") return add("softmax", {add("neg", {x})});
    if (name == "tanhshrink") return add("sub", {x, add("tanh", {x})});
    if (name == "softsign") return add("div", {x, add("add_scalar", {add("abs", {x})})});
    if (name == "frac_floor") return add("sub", {x, add("floor", {x})});
    if (name == "hinge_loss") {
      return add(node.ints.contains("sum") && node.ints.at("sum") ? "sum" : "mean",
                 {add("clamp", {add("rsub_scalar", {add("mul", {x, y()}, true)})})});
    }
    if (name == "normalize" || name == "normalize_l1") {
      return add("div", {x, add("clamp", {add(name == "normalize" ? "l2_norm" : "l1_norm", {x})})});
    }
    if (name == "masked_fill") return add("masked_fill_mask", {x, add("gt_scalar", {y()})});
    if (name == "where") return add("where_mask", {add("gt_scalar", {x}), x, y()});
    if (name == "where_compare") return add("where_mask", {add("gt", {x, y()}), x, id(node.operands.at(2))});
    if (name == "double") return add("add", {x, x}, true);
    if (name == "mean_abs_normalize") return add("div", {x, add("mean", {add("abs", {x})})});
    if (name == "rms_normalize") {
      return add("div", {x, add("sqrt", {add("add_scalar", {add("mean", {add("square", {x})})})})});
    }
    if (name == "exclusive_cumsum") return add("sub", {add("cumsum", {x}), x});
    if (name == "reverse_cumsum") return add("flip", {add("cumsum", {add("flip", {x})})});
    if (name == "heaviside_relu") return add("mul", {x, add("gt_scalar", {y()})}, true);
    // The parameters of a layer are part of it, whether it has them or not.
    bool layer = family == "conv" || (family == "norm" && node.op->arity == 1) || name == "linear" || name == "prelu" ||
                 name == "embedding";
    if (layer) return add(name, {x});
    std::vector<Id> operands;
    for (int operand : node.operands) operands.push_back(id(operand));
    return add(name, operands, node.op->commutative);
  }

  const TensorGraph& graph_;
  OpGraph out_;
  std::vector<Id> ids_;
  std::map<std::string, Id> known_;
  std::map<Id, std::pair<std::string, std::vector<Id>>> made_;  // Operators with their operands.
  std::map<Id, Id> sigmoids_;                                   // What a sigmoid is taken of.
};

}  // namespace

std::string outline(const TensorGraph& graph) { return Outliner(graph).run(); }

std::set<std::string> outline_operators(const TensorGraph& graph) { return Outliner(graph).operators(); }

std::set<std::string> outline_operators(const Operator& op) {
  TensorGraph graph;
  Node input, node;
  input.kind = Node::Kind::kInput;
  for (int i = 0; i < op.arity; ++i) node.operands.push_back(graph.add(input));
  node.op = &op;
  graph.outputs = {graph.add(std::move(node))};
  return outline_operators(graph);
}

}  // namespace tritonrl::graphs
