// SPDX-License-Identifier: Apache-2.0
// SyntaxTree: a Python source parsed by tree-sitter, and the few ways we walk it. Internal to the data room.
#pragma once

#include <tree_sitter/api.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

extern "C" const TSLanguage* tree_sitter_python();

namespace tritonrl {

// A parsed source. Nodes point into the tree, so it must outlive them.
class SyntaxTree {
 public:
  explicit SyntaxTree(const std::string& source) : source_(source) {
    std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), ts_parser_delete);
    CHECK(ts_parser_set_language(parser.get(), tree_sitter_python())) << "grammar does not fit the tree-sitter library";
    tree_.reset(ts_parser_parse_string(parser.get(), nullptr, source_.data(), static_cast<uint32_t>(source_.size())));
    CHECK(tree_ != nullptr) << "tree-sitter gave no tree";
  }
  TSNode root() const { return ts_tree_root_node(tree_.get()); }
  std::string text(TSNode node) const {
    uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);
    return source_.substr(start, end - start);
  }
  std::string text_of_field(TSNode node, const char* field) const { return text(child(node, field)); }
  static TSNode child(TSNode node, const char* field) {
    return ts_node_child_by_field_name(node, field, static_cast<uint32_t>(std::string_view(field).size()));
  }

 private:
  std::string source_;
  std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree_{nullptr, ts_tree_delete};
};

inline std::string_view type_of(TSNode node) { return ts_node_type(node); }

inline void for_each_child(TSNode node, const std::function<void(TSNode)>& fn) {
  for (uint32_t i = 0; i < ts_node_child_count(node); ++i) fn(ts_node_child(node, i));
}

// Pre-order.
inline void for_each_node(TSNode node, const std::function<void(TSNode)>& fn) {
  fn(node);
  for_each_child(node, [&](TSNode c) { for_each_node(c, fn); });
}

// The definition behind decorators, or the node itself.
inline TSNode undecorated(TSNode node) {
  return type_of(node) == "decorated_definition" ? SyntaxTree::child(node, "definition") : node;
}

inline bool is_definition(TSNode node) {
  return type_of(node) == "class_definition" || type_of(node) == "function_definition";
}

}  // namespace tritonrl
