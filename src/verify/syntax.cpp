// SPDX-License-Identifier: Apache-2.0
#include "verify/syntax.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/text.h"

extern "C" const TSLanguage* tree_sitter_python();

namespace tritonrl {
namespace {

// The first error or missing node in source order, walked without recursion (nesting is the candidate's choice).
TSNode first_error(TSNode root) {
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  TSNode found = root;
  bool descend = true;
  while (true) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    if (ts_node_is_error(node) || ts_node_is_missing(node)) {
      found = node;
      break;
    }
    descend = ts_node_has_error(node);
    if (descend && ts_tree_cursor_goto_first_child(&cursor)) continue;
    bool moved = false;
    while (!(moved = ts_tree_cursor_goto_next_sibling(&cursor))) {
      if (!ts_tree_cursor_goto_parent(&cursor)) break;
    }
    if (!moved) break;
  }
  ts_tree_cursor_delete(&cursor);
  return found;
}

std::string line_at(std::string_view code, uint32_t byte) {
  size_t at = std::min<size_t>(byte, code.size());
  size_t begin = at == 0 ? 0 : code.rfind('\n', at - 1);
  begin = begin == std::string_view::npos || at == 0 ? 0 : begin + 1;
  size_t end = std::min(code.find('\n', begin), code.size());
  return valid_utf8(trim(code.substr(begin, std::min<size_t>(end - begin, 120))));
}

}  // namespace

SyntaxCheck check_syntax(std::string_view code) {
  if (code.find('\0') != std::string_view::npos) return {false, 0, 0, "the code holds NUL bytes"};
  std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), ts_parser_delete);
  CHECK(ts_parser_set_language(parser.get(), tree_sitter_python())) << "grammar and tree-sitter do not fit";
  std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree(
      ts_parser_parse_string(parser.get(), nullptr, code.data(), static_cast<uint32_t>(code.size())), ts_tree_delete);
  CHECK(tree != nullptr) << "tree-sitter gave no tree";
  TSNode root = ts_tree_root_node(tree.get());
  if (!ts_node_has_error(root)) return {true, 0, 0, ""};
  TSNode node = first_error(root);
  TSPoint point = ts_node_start_point(node);
  SyntaxCheck check{false, static_cast<int>(point.row) + 1, static_cast<int>(point.column) + 1, ""};
  std::string what = ts_node_is_missing(node) ? cat("\"", ts_node_type(node), "\" is missing") : "invalid syntax";
  check.message = cat("line ", check.line, ", column ", check.column, ": ", what);
  std::string line = line_at(code, ts_node_start_byte(node));
  if (!line.empty()) check.message += cat(" near \"", line, "\"");
  return check;
}

}  // namespace tritonrl
