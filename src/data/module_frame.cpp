// SPDX-License-Identifier: Apache-2.0
#include "data/module_frame.h"

#include <map>
#include <set>

#include "base/text.h"
#include "data/syntax_tree.h"

namespace tritonrl {

namespace {

using Names = std::set<std::string>;

class Framer {
 public:
  explicit Framer(const std::string& source) : tree_(source) {}

  ModuleFrame run() {
    for_each_child(tree_.root(), [&](TSNode node) { statements_.push_back(node); });
    TSNode model = {};
    for (TSNode node : statements_) {
      TSNode definition = undecorated(node);
      if (type_of(definition) == "class_definition" && name_of(definition) == "Model") model = definition;
    }
    if (ts_node_is_null(model)) return failed("the source defines no class Model");
    static const Names kModules = {"(nn.Module)", "(torch.nn.Module)", "(Module)"};
    std::string bases = tree_.text_of_field(model, "superclasses");
    if (!kModules.count(bases)) return failed(cat("Model is a ", bases));
    if (!read_arguments(model)) return failed("forward() takes more than plain arguments");
    frame_.methods = class_body(model, 4);
    while (more_definitions()) {
    }
    bool line = false;  // Was the last one a single line?
    for (const auto& [at, text] : kept_) {
      bool single = text.find('\n') == std::string::npos;
      frame_.definitions += (frame_.definitions.empty() || (line && single) ? "" : "\n\n") + text + "\n";
      line = single;
    }
    for (TSNode node : statements_) {
      if (is_import(node) && imports_what_is_needed(node)) frame_.imports.push_back(tree_.text(node));
    }
    return std::move(frame_);
  }

 private:
  ModuleFrame failed(std::string problem) const {
    ModuleFrame out;
    out.problem = std::move(problem);
    return out;
  }

  std::string name_of(TSNode definition) const { return tree_.text_of_field(definition, "name"); }
  static bool is_import(TSNode node) {
    return type_of(node) == "import_statement" || type_of(node) == "import_from_statement";
  }

  bool read_arguments(TSNode model) {
    bool plain = false;
    for_each_child(SyntaxTree::child(model, "body"), [&](TSNode node) {
      TSNode method = undecorated(node);
      if (type_of(method) != "function_definition" || name_of(method) != "forward") return;
      plain = true;
      TSNode list = SyntaxTree::child(method, "parameters");
      for (uint32_t i = 0; i < ts_node_named_child_count(list); ++i) {
        TSNode argument = ts_node_named_child(list, i);
        std::string_view type = type_of(argument);
        if (type == "comment") continue;
        if (type == "default_parameter" || type == "typed_default_parameter") {
          argument = SyntaxTree::child(argument, "name");
        } else if (type == "typed_parameter") {
          argument = ts_node_named_child(argument, 0);
        }
        plain &= type_of(argument) == "identifier";
        frame_.arguments.push_back(tree_.text(argument));
      }
      plain &= !frame_.arguments.empty() && frame_.arguments[0] == "self";
      if (plain) frame_.arguments.erase(frame_.arguments.begin());
    });
    return plain;
  }

  // Everything that is named below a node becomes needed, but for the parameters of functions.
  void need(TSNode node) {
    Names parameters;
    for_each_node(node, [&](TSNode n) {
      if (type_of(n) != "parameters" && type_of(n) != "lambda_parameters") return;
      for (uint32_t i = 0; i < ts_node_named_child_count(n); ++i) {
        TSNode parameter = ts_node_named_child(n, i);
        TSNode name = SyntaxTree::child(parameter, "name");
        if (ts_node_is_null(name) && ts_node_named_child_count(parameter) > 0) name = ts_node_named_child(parameter, 0);
        parameters.insert(tree_.text(ts_node_is_null(name) ? parameter : name));
      }
    });
    need_below(node, parameters);
  }

  void need_below(TSNode node, const Names& parameters) {
    if (type_of(node) == "attribute") {
      members_.insert(tree_.text_of_field(node, "attribute"));
      return need_below(SyntaxTree::child(node, "object"), parameters);
    }
    if (type_of(node) == "keyword_argument") return need_below(SyntaxTree::child(node, "value"), parameters);
    if (type_of(node) == "identifier" && !parameters.count(tree_.text(node))) needed_.insert(tree_.text(node));
    for_each_child(node, [&](TSNode child) { need_below(child, parameters); });
  }

  // The text of a node with the class's own name in place, its lines moved from its column to `indent`.
  std::string moved(TSNode node, const std::string& from, const std::string& to, size_t indent) const {
    std::vector<std::pair<uint32_t, uint32_t>> renamed;
    if (from != to) {
      for_each_node(node, [&](TSNode n) {
        if (type_of(n) == "identifier" && tree_.text(n) == from)
          renamed.emplace_back(ts_node_start_byte(n), ts_node_end_byte(n));
      });
    }
    std::string text = tree_.text(node);
    uint32_t start = ts_node_start_byte(node);
    for (auto it = renamed.rbegin(); it != renamed.rend(); ++it)
      text.replace(it->first - start, it->second - it->first, to);
    size_t column = ts_node_start_point(node).column;
    std::vector<std::string> lines = split(text, '\n');
    for (size_t i = 0; i < lines.size(); ++i) {
      size_t spaces = std::min(lines[i].find_first_not_of(' '), lines[i].size());
      if (i > 0) lines[i].erase(0, std::min(spaces, column));
      if (!trim(lines[i]).empty()) lines[i].insert(0, std::string(indent, ' '));
    }
    return join(lines, "\n");
  }

  // What is kept of a class: its own statements, __init__ and the methods that those mention.
  std::string class_body(TSNode definition, size_t indent) {
    std::string name = name_of(definition);
    std::vector<TSNode> members;
    for_each_child(SyntaxTree::child(definition, "body"), [&](TSNode node) { members.push_back(node); });
    std::set<size_t> taken;
    bool grew = true;
    while (grew) {
      grew = false;
      for (size_t i = 0; i < members.size(); ++i) {
        TSNode member = undecorated(members[i]);
        bool method = type_of(member) == "function_definition";
        bool wanted = method ? name_of(member) == "__init__" ||
                                   (name_of(member) != "forward" && members_.count(name_of(member)) > 0)
                             : is_assignment(member);
        if (!wanted || !taken.insert(i).second) continue;
        need(members[i]);
        grew = true;
      }
    }
    std::string out;
    for (size_t i : taken) {
      out += moved(members[i], name, name == "Model" ? "ModelNew" : name, indent) + "\n";
      if (type_of(undecorated(members[i])) == "function_definition") out += "\n";
    }
    return out;
  }

  static bool is_assignment(TSNode node) {
    return type_of(node) == "expression_statement" && type_of(ts_node_named_child(node, 0)) == "assignment";
  }

  // Keeps what is defined at module level and needed by now. False when there was nothing new.
  bool more_definitions() {
    for (TSNode node : statements_) {
      uint32_t at = ts_node_start_byte(node);
      TSNode definition = undecorated(node);
      if (kept_.count(at) || is_import(node)) continue;
      if (is_definition(definition)) {
        std::string name = name_of(definition);
        if (name == "Model" || !needed_.count(name)) continue;
        if (type_of(definition) == "class_definition") {
          kept_[at] = "";  // It may mention itself.
          TSNode bases = SyntaxTree::child(definition, "superclasses");
          if (!ts_node_is_null(bases)) need(bases);
          std::string body = class_body(definition, 4);
          kept_[at] = cat("class ", name, ts_node_is_null(bases) ? "" : tree_.text(bases), ":\n",
                          body.empty() ? "    pass" : trim_end(body));
        } else {
          need(node);
          kept_[at] = tree_.text(node);
        }
        return true;
      }
      if (!is_assignment(node)) continue;
      Names names;
      for_each_node(SyntaxTree::child(ts_node_named_child(node, 0), "left"), [&](TSNode n) {
        if (type_of(n) == "identifier") names.insert(tree_.text(n));
      });
      bool wanted = false;
      for (const std::string& name : names) wanted |= needed_.count(name) > 0;
      if (!wanted) continue;
      need(node);
      kept_[at] = tree_.text(node);
      return true;
    }
    return false;
  }

  static std::string trim_end(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  // Does an import bind a name that is needed, other than the two that every solution has?
  bool imports_what_is_needed(TSNode node) const {
    std::string text = tree_.text(node);
    if (text == "import torch" || text == "import torch.nn as nn" || text == "from torch import nn") return false;
    bool wanted = false;
    for (uint32_t i = 0; i < ts_node_named_child_count(node); ++i) {
      TSNode child = ts_node_named_child(node, i);
      if (type_of(node) == "import_from_statement" && i == 0) continue;  // The module it comes from.
      std::string bound = type_of(child) == "aliased_import" ? tree_.text_of_field(child, "alias") : tree_.text(child);
      wanted |= bound == "*" || needed_.count(bound.substr(0, bound.find('.'))) > 0;
    }
    return wanted;
  }

  SyntaxTree tree_;
  ModuleFrame frame_;
  std::vector<TSNode> statements_;
  Names needed_, members_;                // Names at module level, and behind a dot.
  std::map<uint32_t, std::string> kept_;  // By place in the source.
};

}  // namespace

ModuleFrame module_frame(const std::string& source) { return Framer(source).run(); }

}  // namespace tritonrl
