// SPDX-License-Identifier: Apache-2.0
#include "data/synth/tensor_graph.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "data/synth/operators.h"
#include "data/tasks/op_graph.h"

namespace tritonrl::graphs {

const char* short_name(Type type) {
  switch (type) {
    case Type::kFloat32:
      return "float32";
    case Type::kFloat16:
      return "float16";
    case Type::kBfloat16:
      return "bfloat16";
    case Type::kInt64:
      return "int64";
    case Type::kBool:
      return "bool";
  }
  return "";
}

const char* torch_name(Type type) {
  switch (type) {
    case Type::kFloat32:
      return "torch.float32";
    case Type::kFloat16:
      return "torch.float16";
    case Type::kBfloat16:
      return "torch.bfloat16";
    case Type::kInt64:
      return "torch.int64";
    case Type::kBool:
      return "torch.bool";
  }
  return "";
}

Dim number(int64_t value) { return {cat(value), value, value}; }

Dim product(const Shape& dims) {
  Dim out;
  std::vector<std::string> texts;
  for (const Dim& dim : dims) {
    out.full *= dim.full;
    out.tiny *= dim.tiny;
    if (!dim.is_one()) texts.push_back(dim.text);
  }
  if (!texts.empty()) out.text = texts.size() == 1 ? texts[0] : "(" + join(texts, " * ") + ")";
  return out;
}

Dim plus(const Dim& a, const Dim& b) {
  bool numbers =
      std::isdigit(static_cast<unsigned char>(a.text[0])) && std::isdigit(static_cast<unsigned char>(b.text[0]));
  if (numbers) return number(a.full + b.full);
  return {a == b ? cat("(2 * ", a.text, ")") : cat("(", a.text, " + ", b.text, ")"), a.full + b.full, a.tiny + b.tiny};
}

Dim scaled_size(const Dim& size, int64_t factor, int64_t offset, int64_t divisor) {
  auto value = [&](int64_t n) { return (factor * n + offset) / divisor; };
  std::string text = factor == 1 ? size.text : cat(factor, " * ", size.text);
  if (divisor > 1 && offset % divisor == 0 && offset != 0) {  // (n - 2) // 2 + 1 and n // 2 are one size.
    int64_t more = offset / divisor;
    text = cat("(", text, " // ", divisor, more > 0 ? " + " : " - ", std::abs(more), ")");
  } else {
    if (offset != 0) text += cat(offset > 0 ? " + " : " - ", std::abs(offset));
    if (divisor > 1) text = cat(offset == 0 ? text : "(" + text + ")", " // ", divisor);
    if (text != size.text) text = "(" + text + ")";
  }
  return {text, value(size.full), value(size.tiny)};
}

std::vector<ViewGroup> view_groups(const Shape& from, const Shape& to) {
  std::vector<ViewGroup> groups;
  size_t i = 0, j = 0;
  auto skip_ones = [](const Shape& shape, size_t& at) {
    while (at < shape.size() && shape[at].is_one()) ++at;
    return at < shape.size();
  };
  while (true) {
    bool more = skip_ones(from, i), wanted = skip_ones(to, j);
    if (!more && !wanted) return groups;
    ViewGroup group;
    int64_t full = 1, tiny = 1, full_to = 1, tiny_to = 1;
    do {
      bool left = group.from.empty() || (!group.to.empty() && (full < full_to || (full == full_to && tiny < tiny_to)));
      if (left ? !skip_ones(from, i) : !skip_ones(to, j)) return {};
      const Dim& dim = left ? from[i] : to[j];
      (left ? full : full_to) *= dim.full;
      (left ? tiny : tiny_to) *= dim.tiny;
      left ? group.from.push_back(i++) : group.to.push_back(j++);
    } while (group.to.empty() || full != full_to || tiny != tiny_to);
    groups.push_back(std::move(group));
  }
}

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& dim : shape) count *= dim.full;
  return count;
}

std::string shape_text(const Shape& shape) {
  std::vector<std::string> texts;
  for (const Dim& dim : shape) {
    bool wrapped = dim.text.front() == '(' && dim.text.back() == ')';
    // Parentheses that only guard against a product are noise here; "(a) + (b)" would not be safe to strip.
    int depth = 0;
    for (size_t i = 0; wrapped && i + 1 < dim.text.size(); ++i) {
      depth += dim.text[i] == '(' ? 1 : dim.text[i] == ')' ? -1 : 0;
      wrapped = depth > 0;
    }
    texts.push_back(wrapped ? dim.text.substr(1, dim.text.size() - 2) : dim.text);
  }
  return join(texts, ", ");
}

bool broadcast(const Shape& a, const Shape& b, Shape& out) {
  size_t rank = std::max(a.size(), b.size());
  out.assign(rank, Dim());
  for (size_t i = 0; i < rank; ++i) {
    Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(), y = i < b.size() ? b[b.size() - 1 - i] : Dim();
    if (!(x == y) && !x.is_one() && !y.is_one()) return false;
    out[rank - 1 - i] = x.is_one() ? y : x;
  }
  return true;
}

const std::string& Node::torch() const { return call.empty() ? op->torch : call; }

size_t Node::unswept() const {
  CHECK(!windows.empty() && shape.size() > windows.size()) << op->name << " sweeps all it has";
  return shape.size() - windows.size();
}

int64_t Node::taps() const {
  int64_t count = 1;
  for (const Window& window : windows) count *= window.kernel;
  return count;
}

bool TensorGraph::is_output(int node) const { return std::find(outputs.begin(), outputs.end(), node) != outputs.end(); }

std::vector<int> TensorGraph::users(int node) const {
  std::vector<int> out;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto& operands = nodes[i].operands;
    if (std::find(operands.begin(), operands.end(), node) != operands.end()) out.push_back(static_cast<int>(i));
  }
  return out;
}

int64_t TensorGraph::compute_nodes() const {
  return std::count_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.kind == Node::Kind::kCompute; });
}

std::string TensorGraph::name() const {
  if (!title.empty()) return title;
  std::vector<std::string> parts;
  for (const Node& node : nodes) {
    if (node.kind == Node::Kind::kCompute) parts.push_back(node.op->name);
  }
  return join(parts, "_");
}

std::string TensorGraph::hash() const {
  OpGraph graph;
  // Which dimensions are 1, which are alike within one tensor, and the rank: the shape without its sizes.
  auto pattern = [](const Shape& shape) {
    std::string out;
    for (size_t i = 0; i < shape.size(); ++i) {
      size_t first = static_cast<size_t>(std::find(shape.begin(), shape.end(), shape[i]) - shape.begin());
      out += shape[i].is_one() ? "1" : cat("d", first);
    }
    return out;
  };
  std::vector<OpGraph::NodeId> ids;
  for (const Node& node : nodes) {
    std::string role = cat(short_name(node.type), pattern(node.shape));
    if (node.kind == Node::Kind::kInput) {
      ids.push_back(graph.add_input(role + (node.values.low > 0 ? "+" : "")));
    } else if (node.kind == Node::Kind::kParameter) {
      ids.push_back(graph.add_parameter(role));
    } else {
      std::vector<std::string> attributes = {role};
      for (double value : node.numbers) attributes.push_back(cat(value));
      for (int dim : node.dims) attributes.push_back(cat("dim", dim));
      for (const auto& [key, value] : node.ints) attributes.push_back(cat(key, "=", value));
      for (const Window& w : node.windows) {
        attributes.push_back(
            cat("window=", w.kernel, ",", w.stride, ",", w.padding, ",", w.dilation, ",", w.output_padding));
      }
      std::vector<OpGraph::NodeId> operands;
      for (int operand : node.operands) operands.push_back(ids[static_cast<size_t>(operand)]);
      ids.push_back(graph.add(node.op->name, attributes, operands, node.op->commutative));
    }
  }
  std::vector<OpGraph::NodeId> ends;
  for (int output : outputs) ends.push_back(ids[static_cast<size_t>(output)]);
  graph.set_output(ends.size() == 1 ? ends[0] : graph.add("tuple", {}, ends));
  return graph.hash();
}

}  // namespace tritonrl::graphs
