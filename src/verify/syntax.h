// SPDX-License-Identifier: Apache-2.0
// Syntax: is this text Python? Answered in this process, in microseconds, without running Python.
//
// tree-sitter's grammar accepts a little more than CPython does (what it lets through fails at import, as a compile
// error), and must accept everything CPython 3.11 does.
#pragma once

#include <string>
#include <string_view>

namespace tritonrl {

struct SyntaxCheck {
  bool ok = false;
  int line = 0, column = 0;  // Of the first error, counted from 1; 0 = nowhere in particular.
  std::string message;       // "line 3, column 7: ..." or "" when ok.
};

// REQUIRES: code.size() < 2^32. Thread rule: any thread.
SyntaxCheck check_syntax(std::string_view code);

}  // namespace tritonrl
