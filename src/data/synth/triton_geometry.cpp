// SPDX-License-Identifier: Apache-2.0
// Windows and groups that the wrapper reads from modules: sizes of results get names of their own.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

bool is_name(const std::string& text) { return text.find_first_of("( ") == std::string::npos; }

bool says(const std::string& module, const char* word) { return module.find(word) != std::string::npos; }

// What is computed from a node, and the node itself.
std::set<int> downstream(const TensorGraph& graph, int node) {
  std::set<int> out = {node};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int operand : graph.nodes[i].operands) {
      if (out.count(operand)) out.insert(static_cast<int>(i));
    }
  }
  return out;
}

class WindowReader {
 public:
  WindowReader(TensorGraph& graph, const Naming& naming) : graph_(graph), naming_(naming) {}

  std::map<int, ReadWindow> run() {
    std::map<int, ReadWindow> out;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      bool window = node.kind == Node::Kind::kCompute &&
                    (node.op->work == Work::kConv || (node.op->work == Work::kWindow && !node.windows.empty()));
      if (!window || naming_.owners[i].empty() || !may_rename(static_cast<int>(i))) continue;
      std::string suffix = out.empty() ? "" : cat(out.size() + 1);
      out[static_cast<int>(i)] = read(static_cast<int>(i), suffix);
    }
    return out;
  }

 private:
  // A size that keeps its name through the window may not meet the same size from elsewhere behind it.
  bool may_rename(int id) const {
    const std::set<int> behind = downstream(graph_, id);
    for (int user : behind) {
      if (user == id) continue;
      for (int operand : graph_[user].operands) {
        if (behind.count(operand) || graph_[operand].kind == Node::Kind::kParameter) continue;
        for (const Dim& dim : graph_[operand].shape) {
          for (size_t s = 2; s < graph_[id].shape.size(); ++s) {
            const std::string& size = graph_[id].shape[s].text;
            if (is_name(size) && replace_word(dim.text, size, "") != dim.text) return false;
          }
        }
      }
    }
    return true;
  }

  void rename(int id, const std::string& size, const std::string& name) {
    std::set<int> where = downstream(graph_, id);
    for (int user : downstream(graph_, id)) {
      for (int operand : graph_[user].operands) {
        if (user != id && graph_[operand].kind == Node::Kind::kParameter) where.insert(operand);
      }
    }
    bool everywhere = !is_name(size);  // An expression is the same size wherever it stands.
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!everywhere && !where.count(static_cast<int>(i))) continue;
      for (Dim& dim : graph_.nodes[i].shape)
        dim.text = everywhere ? replace_all(dim.text, size, name) : replace_word(dim.text, size, name);
    }
  }

  ReadWindow read(int id, const std::string& suffix) {
    const Node node = graph_[id];  // As it was: its shape is renamed below.
    const size_t dims = node.windows.size();
    const std::string& module = naming_.modules[static_cast<size_t>(id)];
    ReadWindow out{naming_.owners[static_cast<size_t>(id)], suffix};
    auto differs = [&](int64_t Window::*field, int64_t usual) {
      return std::any_of(node.windows.begin(), node.windows.end(), [&](const Window& w) { return w.*field != usual; });
    };
    bool conv = node.op->work == Work::kConv;
    out.dilation = says(module, "dilation") || differs(&Window::dilation, 1);
    out.groups = conv && (says(module, "groups") || node.ints.at("groups") != 1);
    out.bias = conv && says(module, "bias=");
    bool more = says(module, "output_padding") || differs(&Window::output_padding, 0);
    std::vector<std::string> letters;
    for (size_t s = 0; s < dims; ++s) letters.emplace_back(1, "dhw"[s + 3 - dims]);
    auto line = [&](const char* mark, const char* attribute) {
      std::vector<std::string> names;
      for (const std::string& letter : letters) names.push_back(mark + letter + suffix);
      std::string value = cat(out.owner, ".", attribute);
      if (dims == 1) value += conv || says(module, "AvgPool") ? "[0]" : "";
      if (dims > 1 && !conv) value = cat(dims == 2 ? "pair(" : "triple(", value, ")");
      out.lines.push_back(cat(join(names, ", "), " = ", value));
    };
    line("k", "kernel_size");
    line("s", "stride");
    line("p", "padding");
    if (out.dilation) line("d", "dilation");
    for (size_t s = 0; s < dims; ++s) {
      const std::string l = letters[s] + suffix, from = graph_[node.operands[0]].shape[s + node.unswept()].text;
      std::string reach = out.dilation ? cat("d", l, " * (k", l, " - 1)") : cat("k", l), size;
      if (conv && node.ints.at("transposed")) {
        size = cat("(", from, " - 1) * s", l, " - 2 * p", l, " + ", reach);
        if (more) size += cat(" + ", out.owner, ".output_padding[", s, "]");
        if (out.dilation) size += " + 1";
      } else {
        size = cat("(", from, " + 2 * p", l, " - ", reach, out.dilation ? " - 1" : "", ") // s", l, " + 1");
      }
      std::string name = cat("out_", l);
      out.lines.push_back(cat(name, " = ", size));
      rename(id, node.shape[s + node.unswept()].text, name);
    }
    return out;
  }

  TensorGraph& graph_;
  const Naming& naming_;
};

}  // namespace

std::map<int, ReadWindow> read_windows(TensorGraph& graph, const Naming& naming) {
  return WindowReader(graph, naming).run();
}

}  // namespace tritonrl::graphs
