// SPDX-License-Identifier: Apache-2.0
#include "data/synth/launch_plan.h"

#include <algorithm>

#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

// softmax(scale * q k^T) v, the scores and weights in float32. Returns the last product, which is not added yet.
Node attention_parts(TensorGraph& out, std::vector<int>& from, const Node& node) {
  auto part = [&](const char* op, std::vector<int> operands) {
    Node made;
    made.op = find_operator(op);
    made.operands = std::move(operands);
    made.type = Type::kFloat32;
    made.shape = out[made.operands[0]].shape;
    return made;
  };
  auto add = [&](Node made) {
    from.push_back(-1);
    return out.add(std::move(made));
  };
  Node scores = part("matmul", {node.operands[0], node.operands[1]});
  scores.shape.back() = out[node.operands[1]].shape[scores.shape.size() - 2];
  scores.ints["transposed"] = 1;
  Node scaled = part("mul_scalar", {add(std::move(scores))});
  scaled.numbers = node.numbers;
  if (node.numbers.empty()) {
    scaled.op = find_operator("scale");
    scaled.numbers = {-0.5};
    scaled.module_dims = {out[node.operands[0]].shape.back()};
  }
  Node weights = part("softmax", {add(std::move(scaled))});
  weights.dims = {static_cast<int>(weights.shape.size()) - 1};
  Node result = part("matmul", {add(std::move(weights)), node.operands[2]});
  result.ints["transposed"] = 0;
  result.shape = node.shape;
  result.type = node.type;
  return result;
}

RowSpace space_of(const TensorGraph& graph, const Node& node) {
  RowSpace space{graph[node.operands[0]].shape, node.dims, -1};
  if (auto it = node.ints.find("groups"); it != node.ints.end()) space.groups = it->second;
  return space;
}

// Losses become a pointwise or row operator and a reduction over everything; attention two products and a softmax.
TensorGraph taken_apart(const TensorGraph& graph, std::vector<int>& from, int64_t longest_row) {
  TensorGraph out;
  out.symbols = graph.symbols;
  out.title = graph.title;
  std::vector<int> now(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node node = graph.nodes[i];
    for (int& operand : node.operands) operand = now[static_cast<size_t>(operand)];
    if (node.op != nullptr && node.op->then_mean) {
      Node each = node;
      each.shape = out[node.operands[0]].shape;
      each.type = Type::kFloat32;
      if (node.op->work == Work::kRow) each.shape.pop_back();
      Node whole;
      whole.op = find_operator(node.ints.at("sum") ? "sum" : "mean");
      whole.shape = {};
      whole.type = node.type;
      whole.numbers = {};
      for (size_t d = 0; d < each.shape.size(); ++d) whole.dims.push_back(static_cast<int>(d));
      whole.operands = {out.add(std::move(each))};
      from.push_back(-1);
      now[i] = out.add(std::move(whole));
    } else if (node.op != nullptr && node.op->name == "scaled_dot_product_attention") {
      Node result = attention_parts(out, from, node);
      now[i] = out.add(std::move(result));
    } else if (node.op != nullptr && node.op->work == Work::kRow &&
               (node.op->name == "frobenius_norm" || loops_over(space_of(out, node), longest_row))) {
      auto parts = long_row_parts(out, from, node);
      now[i] = out.add(parts ? std::move(*parts) : std::move(node));
    } else {
      now[i] = out.add(std::move(node));
    }
    from.push_back(static_cast<int>(i));
  }
  for (int output : graph.outputs) out.outputs.push_back(now[static_cast<size_t>(output)]);
  return out;
}

class Planner {
 public:
  Planner(const TensorGraph& graph, int64_t longest_row) {
    plan_.longest_row = longest_row;
    plan_.graph = taken_apart(graph, plan_.from, longest_row);
    plan_.home.assign(plan_.graph.nodes.size(), -1);
    deps_.resize(plan_.graph.nodes.size());
  }

  std::optional<LaunchPlan> run() {
    for (size_t i = 0; i < plan_.graph.nodes.size(); ++i) {
      const Node& node = plan_.graph.nodes[i];
      if (node.kind != Node::Kind::kCompute) continue;
      if (!place(static_cast<int>(i))) return std::nullopt;
    }
    for (int output : plan_.graph.outputs) {
      if (home(output) < 0) own_kernel(output);
    }
    decide_stores();
    return std::move(plan_);
  }

 private:
  int home(int node) const { return plan_.home[static_cast<size_t>(node)]; }
  const Node& node(int id) const { return plan_.graph[id]; }

  bool place(int id) {
    const Node& n = node(id);
    switch (n.op->work) {
      case Work::kPointwise:
        if (!join_epilogue(id)) inline_it(id);
        return true;
      case Work::kMove:
        if (n.op->name != "view" || !joins_rows(id)) inline_it(id);
        return true;
      case Work::kRow:
        return place_row(id);
      case Work::kWindow:
        load_plainly(n.operands[0], 1);
        start(KernelPlan::Kind::kWindow, id);
        return true;
      case Work::kGemm:
        load_plainly(n.operands[0], 2);
        load_plainly(n.operands[1], 2);
        start(KernelPlan::Kind::kGemm, id);
        return true;
      case Work::kConv:
        load_plainly(n.operands[0], 0);
        start(KernelPlan::Kind::kConv, id);
        return true;
      case Work::kOther:
        return false;
    }
    return false;
  }

  void inline_it(int id) {
    for (int operand : node(id).operands) add_deps(deps_[static_cast<size_t>(id)], operand);
  }

  // What must be in memory for `operand` to be read.
  void add_deps(std::set<int>& deps, int operand) const {
    if (home(operand) >= 0) {
      deps.insert(home(operand));
    } else {
      const auto& more = deps_[static_cast<size_t>(operand)];
      deps.insert(more.begin(), more.end());
    }
  }

  int start(KernelPlan::Kind kind, int id) {
    KernelPlan kernel;
    kernel.kind = kind;
    kernel.anchor = id;
    kernel.members = {id};
    for (int operand : node(id).operands) add_deps(kernel.needs, operand);
    plan_.kernels.push_back(std::move(kernel));
    plan_.home[static_cast<size_t>(id)] = static_cast<int>(plan_.kernels.size()) - 1;
    return home(id);
  }

  // Inlined compute nodes below `id`, counted along all paths.
  int depth(int id) const {
    if (node(id).kind != Node::Kind::kCompute || home(id) >= 0) return 0;
    int count = 1;
    for (int operand : node(id).operands) count += depth(operand);
    return count;
  }

  // Gives `id` a kernel of its own when reading it in a loop would compute too much again.
  void load_plainly(int id, int deepest) {
    if (depth(id) > deepest) own_kernel(id);
  }

  void own_kernel(int id) { start(KernelPlan::Kind::kPointwise, id); }

  static Shape dropped(const RowSpace& space, bool keep) {
    Shape out;
    for (size_t i = 0; i < space.shape.size(); ++i) {
      bool gone = std::find(space.dims.begin(), space.dims.end(), static_cast<int>(i)) != space.dims.end();
      if (!gone) out.push_back(space.shape[i]);
      if (gone && keep) out.push_back(Dim());
    }
    return out;
  }

  static bool distinct(const Shape& shape) {
    for (size_t i = 0; i < shape.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (shape[i] == shape[j]) return false;
      }
    }
    return true;
  }

  // May a value of kernel k be read, in that kernel, where a node of shape `shape` is computed?
  bool readable(const KernelPlan& kernel, int operand, const Shape& shape) const {
    const Shape& own = node(operand).shape;
    if (own == shape || node(operand).ints.count(kRowNumber)) return true;
    if (kernel.kind != KernelPlan::Kind::kRow) return false;
    if (own == kernel.space.shape) return false;  // A smaller result of a full value: not pointwise.
    const Shape kept = dropped(kernel.space, true), gone = dropped(kernel.space, false);
    if (plan_.loops(kernel.space) && (own == kept || own == gone) && (shape == kept || shape == gone)) return true;
    if (kernel.space.groups >= 0 || !(shape == kernel.space.shape)) return false;
    return own == dropped(kernel.space, true) ||
           (kernel.space.dims.front() == 0 && own == dropped(kernel.space, false) && distinct(kernel.space.shape));
  }

  bool fits(const KernelPlan& kernel, int id) const {
    const Shape& shape = node(id).shape;
    if (node(id).ints.count(kRowNumber)) return true;
    if (kernel.kind != KernelPlan::Kind::kRow) return shape == node(kernel.anchor).shape;
    if (kernel.space.whole()) return shape.empty();
    if (shape == kernel.space.shape) return !plan_.loops(kernel.space) || sums_up(*node(kernel.anchor).op);
    return kernel.space.groups < 0 && (shape == dropped(kernel.space, true) || shape == dropped(kernel.space, false));
  }

  // Can kernel k compute node `id` too? Its operands are in k in readable form, or in memory before k runs.
  bool can_join(int k, int id) const {
    const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(k)];
    for (int operand : node(id).operands) {
      if (home(operand) == k) {
        if (!readable(kernel, operand, node(id).shape)) return false;
        continue;
      }
      std::set<int> deps;
      add_deps(deps, operand);
      if (!deps.empty() && *deps.rbegin() >= k) return false;
    }
    return true;
  }

  void join(int k, int id) {
    KernelPlan& kernel = plan_.kernels[static_cast<size_t>(k)];
    for (int operand : node(id).operands) {
      if (home(operand) != k) add_deps(kernel.needs, operand);
    }
    kernel.members.push_back(id);
    plan_.home[static_cast<size_t>(id)] = k;
  }

  bool join_epilogue(int id) {
    int k = -1;
    for (int operand : node(id).operands) k = std::max(k, home(operand));
    if (k < 0 || !fits(plan_.kernels[static_cast<size_t>(k)], id) || !can_join(k, id)) return false;
    join(k, id);
    return true;
  }

  // Another shape of one number a row, in the kernel that computes it.
  bool joins_rows(int id) {
    int k = home(node(id).operands[0]);
    if (k < 0) return false;
    const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(k)];
    bool passes = kernel.kind == KernelPlan::Kind::kRow && plan_.loops(kernel.space) && !kernel.space.whole() &&
                  kernel.space.groups < 0 && sums_up(*node(kernel.anchor).op);
    return passes && node(id).shape == dropped(kernel.space, false) && join_epilogue(id);
  }

  bool place_row(int id) {
    const Node& n = node(id);
    RowSpace space = space_of(plan_.graph, n);
    for (size_t i = 1; i < n.dims.size(); ++i) {
      if (n.dims[i] != n.dims[i - 1] + 1) return false;
    }
    int k = -1;
    for (int operand : n.operands) k = std::max(k, home(operand));
    if (k >= 0) {
      const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(k)];
      bool full = true;  // Operands from that kernel must be whole rows.
      for (int operand : n.operands) full &= home(operand) != k || node(operand).shape == space.shape;
      bool passes = !plan_.loops(space) || (sums_up(*n.op) && sums_up(*node(kernel.anchor).op));
      if (kernel.kind == KernelPlan::Kind::kRow && kernel.space == space && !space.whole() && full && passes) {
        bool in_order = true;
        for (int operand : n.operands) {
          if (home(operand) == k) continue;
          std::set<int> deps;
          add_deps(deps, operand);
          in_order &= deps.empty() || *deps.rbegin() < k;
        }
        if (in_order) {
          join(k, id);
          return true;
        }
      }
    }
    int started = start(KernelPlan::Kind::kRow, id);
    plan_.kernels[static_cast<size_t>(started)].space = space;
    return true;
  }

  void decide_stores() {
    const auto& nodes = plan_.graph.nodes;
    plan_.stored.assign(nodes.size(), false);
    std::vector<bool> alive(nodes.size(), false);
    for (int output : plan_.graph.outputs) plan_.stored[static_cast<size_t>(output)] = true;
    // A value read by another kernel, directly or through inlined nodes, is stored.
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].kind != Node::Kind::kCompute) {
        plan_.stored[i] = true;
        continue;
      }
      if (plan_.home[i] < 0) continue;
      for (int user : plan_.graph.users(static_cast<int>(i))) {
        if (home(user) != plan_.home[i]) plan_.stored[i] = true;
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      CHECK(!plan_.stored[i] || !nodes[i].ints.count(kRowNumber))
          << nodes[i].op->name << " has no shape to be stored in";
    }
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      for (int member : plan_.kernels[k].members) {
        if (plan_.stored[static_cast<size_t>(member)]) plan_.kernels[k].stores.push_back(member);
      }
    }
  }

  LaunchPlan plan_;
  std::vector<std::set<int>> deps_;  // Of inlined nodes: kernels they read from.
};

}  // namespace

bool loops_over(const RowSpace& space, int64_t longest_row) {
  if (longest_row == 0) return false;
  const bool area = space.groups >= 0 || space.dims.size() > 1;
  return space.length().full > (area && !space.whole() ? longest_row / 4 : longest_row);
}

Dim RowSpace::length() const {
  if (groups == 0) return product(Shape(shape.begin() + 2, shape.end()));
  if (groups > 0) {
    Dim part{cat("(", shape[1].text, " // ", groups_text(), ")"), shape[1].full / groups, shape[1].tiny / groups};
    if (groups == 1 && groups_owner.empty()) part = shape[1];
    Shape rest(shape.begin() + 2, shape.end());
    rest.insert(rest.begin(), part);
    return product(rest);
  }
  return product(Shape(shape.begin() + dims.front(), shape.begin() + dims.back() + 1));
}

Dim RowSpace::rows() const {
  if (groups == 0) return product({shape[0], shape[1]});
  if (groups > 0) return product({shape[0], {groups_text(), groups, groups}});
  Shape rest = outer();
  for (const Dim& dim : inner()) rest.push_back(dim);
  return product(rest);
}

std::optional<LaunchPlan> plan_kernels(const TensorGraph& graph, int64_t longest_row) {
  return Planner(graph, longest_row).run();
}

}  // namespace tritonrl::graphs
