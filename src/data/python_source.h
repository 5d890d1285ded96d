// SPDX-License-Identifier: Apache-2.0
// What we read out of a task's Python source without running it, through tree-sitter's Python grammar.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tritonrl {

// The line (from 1) of the first syntax error, or 0 when the source parses.
int64_t first_syntax_error(const std::string& source);

// Names of the classes and functions defined at module level.
std::set<std::string> top_level_definitions(const std::string& source);

// "source:" and 32 hex digits: a hash of the source in a normal form, for tasks whose operation graph is not known.
// Not part of it: white space, comments, docstrings, type annotations, names of variables, arguments, functions and of
// members of self, import aliases, quote style, and the values of integer constants at module level (sizes).
// Weaker than OpGraph::hash: two ways to write the same computation hash apart.
// With `keep_constants` false, no number counts, so that a source under other constants hashes alike.
std::string graph_hash_of_source(const std::string& source, bool keep_constants = true);

// The lines of code in classes and functions (those of get_inputs and get_init_inputs, imports, headers of definitions
// and calls of super().__init__ left out, and those that only move names about), each in a normal form without names of
// its own and without numbers. Sorted, each once: what two sources have in common whatever their order.
std::vector<std::string> normal_lines(const std::string& source);

// The operations a module uses, by their last name: functions and methods it calls ("relu", "Linear", "sum") and its
// binary and unary operators ("+", "unary -"), found in the body of class Model. Calls of super() and of __init__ are
// left out.
std::set<std::string> operators_of_source(const std::string& source);

// The operators that all classes and functions of a source, get_inputs and get_init_inputs left out, need of a library:
// by their last name, modules that constructors make, functions and methods that are called elsewhere, and operators
// there. Left out: members of self, what the source defines itself, Python's own functions, and the module `math`.
std::set<std::string> library_operators(const std::string& source);

}  // namespace tritonrl
