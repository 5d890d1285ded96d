// SPDX-License-Identifier: Apache-2.0
#include "data/plan_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "data/python_source.h"
#include "data/syntax_tree.h"

namespace tritonrl {
namespace {

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (!item.empty() && std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// "a, b and c".
std::string listed(const std::vector<std::string>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += cat(i == 0 ? "" : i + 1 == items.size() ? " and " : ", ", items[i]);
  return out;
}

struct Kernel {
  std::vector<std::string> reads, computes, writes;
  bool masked = false, loops = false;
};

// The pointer in an address: "x_ptr + row * N + cols" is of x.
std::string pointer_in(const SyntaxTree& tree, TSNode address) {
  std::string name;
  for_each_node(address, [&](TSNode node) {
    if (name.empty() && type_of(node) == "identifier") name = tree.text(node);
  });
  for (const char* ending : {"_ptr", "_pointer", "_p"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - std::string(ending).size());
  }
  return name;
}

using Definitions = std::map<std::string, TSNode>;

Kernel kernel_of(const SyntaxTree& tree, TSNode definition, const Definitions& definitions) {
  static const std::set<std::string> kScaffold = {"program_id", "arange", "constexpr",   "zeros",         "full",
                                                  "where",      "cdiv",   "multiple_of", "max_contiguous"};
  Kernel kernel;
  for_each_node(SyntaxTree::child(definition, "body"), [&](TSNode node) {
    std::string_view type = type_of(node);
    kernel.loops |= type == "for_statement" || type == "while_statement";
    if (type != "call") return;
    std::string function = tree.text_of_field(node, "function");
    if (definitions.contains(function)) add_once(kernel.computes, function);  // A helper of its own.
    if (!function.starts_with("tl.")) return;
    function = function.substr(function.rfind('.') + 1);
    TSNode arguments = SyntaxTree::child(node, "arguments");
    uint32_t given = ts_node_named_child_count(arguments);
    if ((function == "load" || function == "store") && given > 0) {
      add_once(function == "load" ? kernel.reads : kernel.writes, pointer_in(tree, ts_node_named_child(arguments, 0)));
      kernel.masked |= given > (function == "load" ? 1u : 2u);
    } else if (!kScaffold.count(function)) {
      add_once(kernel.computes, function);
    }
  });
  return kernel;
}

}  // namespace

std::string plan_of(const std::string& source, const std::string& solution) {
  SyntaxTree tree(solution);
  Definitions definitions;
  for_each_child(tree.root(), [&](TSNode node) {
    TSNode definition = undecorated(node);
    if (type_of(definition) == "function_definition") {
      definitions.emplace(tree.text_of_field(definition, "name"), definition);
    }
  });
  std::vector<std::string> lines;
  for_each_node(tree.root(), [&](TSNode node) {
    if (type_of(node) != "call") return;
    TSNode function = SyntaxTree::child(node, "function");
    if (ts_node_is_null(function) || type_of(function) != "subscript") return;
    std::string name = tree.text_of_field(function, "value");
    auto found = definitions.find(name);
    if (found == definitions.end()) return;
    std::string grid = tree.text(function).substr(name.size());
    grid = trim(grid.substr(1, grid.size() - 2));
    Kernel kernel = kernel_of(tree, found->second, definitions);
    std::string line = cat("- `", name, "` on the grid `", grid, "`: a program reads ", listed(kernel.reads),
                           kernel.masked ? " under a mask" : "", kernel.loops ? ", block after block in a loop" : "");
    if (!kernel.computes.empty()) line += cat(", computes ", listed(kernel.computes));
    if (!kernel.writes.empty()) line += cat(", and writes ", listed(kernel.writes));
    lines.push_back(line + ".");
  });
  if (lines.empty()) return "";
  auto operators = operators_of_source(source);
  std::vector<std::string> names(operators.begin(), operators.end());
  std::string begin = lines.size() == 1 ? "One kernel" : cat(lines.size(), " kernels");
  if (!names.empty()) begin += cat(lines.size() == 1 ? " does " : " do ", listed(names));
  return begin + ":\n" + join(lines, "\n");
}

}  // namespace tritonrl
