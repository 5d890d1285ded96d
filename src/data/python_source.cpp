// SPDX-License-Identifier: Apache-2.0
#include "data/python_source.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/text.h"
#include "data/syntax_tree.h"

namespace tritonrl {

namespace {

bool is_docstring(TSNode node) {
  return type_of(node) == "expression_statement" && ts_node_named_child_count(node) == 1 &&
         type_of(ts_node_named_child(node, 0)) == "string";
}

// Upper-case names of module-level integers: `N = 1024`.
bool is_size(const SyntaxTree& tree, TSNode assignment) {
  TSNode right = SyntaxTree::child(assignment, "right");
  if (ts_node_is_null(right) || type_of(right) != "integer") return false;
  for (unsigned char c : tree.text_of_field(assignment, "left")) {
    if (std::islower(c)) return false;
  }
  return true;
}

// Writes a source in its normal form, token by token.
class Normaliser {
 public:
  explicit Normaliser(const std::string& source, bool keep_constants = true)
      : tree_(source), keep_constants_(keep_constants) {
    for_each_node(tree_.root(), [&](TSNode node) { collect(node); });
  }

  std::string run() {
    visit(tree_.root(), true);
    return out_;
  }

  std::vector<std::string> lines() {
    flat_ = true;
    std::set<std::string> found;
    visit_statements(tree_.root(), &found);
    return {found.begin(), found.end()};
  }

 private:
  // One line for each statement; of those that hold others, their heads.
  void visit_statements(TSNode node, std::set<std::string>* found) {
    for_each_child(node, [&](TSNode child) {
      std::string_view type = type_of(child);
      if (type == "import_statement" || type == "import_from_statement" || type == "comment" || is_docstring(child)) {
        return;
      }
      TSNode definition = undecorated(child);
      if (is_definition(definition)) {
        std::string name = tree_.text_of_field(definition, "name");
        if (name == "get_inputs" || name == "get_init_inputs") return;
        return visit_statements(SyntaxTree::child(definition, "body"), found);
      }
      bool module_level = type_of(node) == "module";
      if (module_level) return;  // Sizes, and what runs at import.
      std::vector<TSNode> blocks;
      out_.clear();
      for_each_child(child, [&](TSNode part) {
        if (type_of(part) == "block") return blocks.push_back(part);
        if (type_of(part).find("clause") != std::string_view::npos) return blocks.push_back(part);
        if (type_of(part) != "comment") visit(part, false);
      });
      if (ts_node_child_count(child) == 0) visit(child, false);
      if (says_something(out_) && out_.find("super\n") == std::string::npos)
        found->insert(std::string(type) + ":" + out_);
      for (TSNode block : blocks) visit_statements(block, found);
    });
  }

  // More than names being moved about: `x = self.conv(x)` and `return x` are in every module.
  static bool says_something(const std::string& line) {
    static const std::set<std::string> empty = {"v", "self", ".member", "return", "=", "(", ")", ",", "[", "]", ""};
    for (const std::string& token : split(line, '\n')) {
      if (!empty.count(token)) return true;
    }
    return false;
  }

  void collect(TSNode node) {
    std::string_view type = type_of(node);
    if (type == "import_statement" || type == "import_from_statement") {
      collect_import(node);
    } else if (is_definition(node)) {
      bind(SyntaxTree::child(node, "name"));
    } else if (type == "parameters" || type == "lambda_parameters") {
      for_each_child(node, [&](TSNode c) {
        TSNode name = SyntaxTree::child(c, "name");
        if (ts_node_is_null(name) && type_of(c) != "identifier" && ts_node_named_child_count(c) > 0) {
          name = ts_node_named_child(c, 0);
        }
        bind(ts_node_is_null(name) ? c : name);
      });
    } else if (type == "assignment" || type == "augmented_assignment" || type == "for_statement" ||
               type == "for_in_clause" || type == "named_expression") {
      TSNode left = SyntaxTree::child(node, type == "named_expression" ? "name" : "left");
      if (!ts_node_is_null(left)) bind_pattern(left);
    }
  }

  void collect_import(TSNode node) {
    TSNode module = SyntaxTree::child(node, "module_name");
    std::string prefix = ts_node_is_null(module) ? "" : tree_.text(module) + ".";
    for_each_child(node, [&](TSNode c) {
      if (!ts_node_is_null(module) && ts_node_eq(c, module)) return;
      if (type_of(c) == "aliased_import") {
        imported_[tree_.text_of_field(c, "alias")] = prefix + tree_.text_of_field(c, "name");
      } else if (type_of(c) == "dotted_name" && !prefix.empty()) {
        imported_[tree_.text(c)] = prefix + tree_.text(c);
      }
    });
  }

  void bind(TSNode name) {
    if (type_of(name) == "identifier") bound_.insert(tree_.text(name));
  }
  void bind_pattern(TSNode node) {  // Targets only: in `a.b = 1` and `a[i] = 1` nothing is bound.
    if (type_of(node) == "attribute" || type_of(node) == "subscript") return;
    bind(node);
    for_each_child(node, [&](TSNode c) { bind_pattern(c); });
  }

  std::string renamed(const std::string& kind, const std::string& name) {
    if (flat_) return kind;
    auto [it, added] = names_.try_emplace(kind + name, cat(kind, names_.size()));
    return it->second;
  }

  void visit(TSNode node, bool module_level) {
    std::string_view type = type_of(node);
    if (type == "comment" || type == "import_statement" || type == "import_from_statement" || type == "type" ||
        is_docstring(node)) {
      return;
    }
    if (type == "assignment" && module_level && is_size(tree_, node)) {
      emit("size");
      visit(SyntaxTree::child(node, "left"), false);
      return;
    }
    if (type == "string") {
      emit("'");
      for_each_child(node, [&](TSNode c) {
        if (type_of(c) == "string_content") emit(tree_.text(c));
        if (type_of(c) == "interpolation") visit(c, false);
      });
      emit("'");
      return;
    }
    if (!keep_constants_ && (type == "integer" || type == "float")) return emit("n");
    if (flat_ && (type == "integer" || type == "float")) return emit("n");
    if (type == "attribute") return visit_attribute(node);
    if (type == "keyword_argument") {
      emit(tree_.text_of_field(node, "name") + "=");
      return visit(SyntaxTree::child(node, "value"), false);
    }
    if (type == "identifier") return visit_identifier(tree_.text(node));
    if (ts_node_child_count(node) == 0) return emit(tree_.text(node));
    bool block = type == "block";
    if (block) emit("{");
    bool still = module_level && (type == "module" || type == "expression_statement");
    for_each_child(node, [&](TSNode c) {
      bool annotation =
          type_of(c) == ":" && (type == "typed_parameter" || type == "typed_default_parameter" ||
                                (type == "assignment" && !ts_node_is_null(SyntaxTree::child(node, "type"))));
      bool arrow = type_of(c) == "->";
      if (!annotation && !arrow) visit(c, still);
    });
    if (block) emit("}");
  }

  void visit_attribute(TSNode node) {
    TSNode object = SyntaxTree::child(node, "object");
    std::string name = tree_.text_of_field(node, "attribute");
    visit(object, false);
    emit(type_of(object) == "identifier" && tree_.text(object) == "self" ? "." + renamed("member", name) : "." + name);
  }

  void visit_identifier(const std::string& name) {
    if (auto it = imported_.find(name); it != imported_.end()) return emit(replace_all(it->second, ".", "\n."));
    emit(bound_.count(name) > 0 && !is_contract(name) ? renamed("v", name) : name);
  }
  // Names that mean something to whoever runs the task.
  static bool is_contract(const std::string& name) {
    return name == "Model" || name == "forward" || name == "get_inputs" || name == "get_init_inputs" ||
           name == "__init__";
  }

  void emit(const std::string& token) { out_ += token + "\n"; }

  SyntaxTree tree_;
  bool keep_constants_;
  bool flat_ = false;  // All names of a kind look alike, and all numbers.
  std::set<std::string> bound_;
  std::map<std::string, std::string> imported_, names_;
  std::string out_;
};

}  // namespace

int64_t first_syntax_error(const std::string& source) {
  SyntaxTree tree(source);
  if (!ts_node_has_error(tree.root())) return 0;
  int64_t line = 0;
  for_each_node(tree.root(), [&](TSNode node) {
    if (line == 0 && (ts_node_is_error(node) || ts_node_is_missing(node))) line = ts_node_start_point(node).row + 1;
  });
  return std::max<int64_t>(line, 1);
}

std::set<std::string> top_level_definitions(const std::string& source) {
  SyntaxTree tree(source);
  std::set<std::string> names;
  for_each_child(tree.root(), [&](TSNode node) {
    TSNode definition = undecorated(node);
    if (is_definition(definition)) names.insert(tree.text_of_field(definition, "name"));
  });
  return names;
}

std::string graph_hash_of_source(const std::string& source, bool keep_constants) {
  return (keep_constants ? "source:" : "loose:") + content_hash(Normaliser(source, keep_constants).run());
}

std::vector<std::string> normal_lines(const std::string& source) { return Normaliser(source).lines(); }

std::set<std::string> operators_of_source(const std::string& source) {
  SyntaxTree tree(source);
  std::set<std::string> operators;
  auto look = [&](TSNode node) {
    if (type_of(node) == "call") {
      TSNode callee = SyntaxTree::child(node, "function");
      std::string name = type_of(callee) == "attribute" ? tree.text_of_field(callee, "attribute") : tree.text(callee);
      if (name != "super" && name != "__init__") operators.insert(name);
    } else if (type_of(node) == "binary_operator") {
      operators.insert(tree.text_of_field(node, "operator"));
    } else if (type_of(node) == "unary_operator" && type_of(SyntaxTree::child(node, "argument")) == "identifier") {
      operators.insert("unary " + tree.text_of_field(node, "operator"));
    }
  };
  for_each_child(tree.root(), [&](TSNode node) {
    TSNode definition = undecorated(node);
    if (type_of(definition) == "class_definition" && tree.text_of_field(definition, "name") == "Model") {
      for_each_node(definition, look);
    }
  });
  return operators;
}

std::set<std::string> library_operators(const std::string& source) {
  SyntaxTree tree(source);
  std::set<std::string> operators, own = top_level_definitions(source), imported;
  for_each_child(tree.root(), [&](TSNode node) {
    if (type_of(node) != "import_from_statement") return;
    for_each_node(node, [&](TSNode name) {
      if (type_of(name) == "identifier") imported.insert(tree.text(name));
    });
  });
  auto call = [&](TSNode node, bool constructor) {
    TSNode callee = SyntaxTree::child(node, "function");
    bool member = type_of(callee) == "attribute";
    std::string object = member ? tree.text_of_field(callee, "object") : "";
    std::string name = member ? tree.text_of_field(callee, "attribute") : tree.text(callee);
    if (object == "self" || object == "math" || object.rfind("super(", 0) == 0 || own.count(name)) return;
    if (!member && !imported.count(name)) return;  // Python's own, or a module in a variable.
    auto is_class = [](const std::string& text) { return std::isupper(static_cast<unsigned char>(text[0])) != 0; };
    if (!constructor || is_class(name) || (member && is_class(object))) operators.insert(name);
  };
  std::function<void(TSNode, bool)> walk = [&](TSNode node, bool constructor) {
    if (type_of(node) == "function_definition") constructor = tree.text_of_field(node, "name") == "__init__";
    if (type_of(node) == "call") {
      call(node, constructor);
    } else if (!constructor && type_of(node) == "binary_operator") {
      operators.insert(tree.text_of_field(node, "operator"));
    } else if (!constructor && type_of(node) == "unary_operator" &&
               type_of(SyntaxTree::child(node, "argument")) == "identifier") {
      operators.insert("unary " + tree.text_of_field(node, "operator"));
    }
    for_each_child(node, [&](TSNode c) { walk(c, constructor); });
  };
  for_each_child(tree.root(), [&](TSNode node) {
    TSNode definition = undecorated(node);
    if (!is_definition(definition)) return;
    std::string name = tree.text_of_field(definition, "name");
    if (name != "get_inputs" && name != "get_init_inputs") walk(definition, false);
  });
  return operators;
}

}  // namespace tritonrl
