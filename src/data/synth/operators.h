// SPDX-License-Identifier: Apache-2.0
// Operator: one PyTorch operator as the synthesiser of graphs knows it. Adding an operator is adding one entry to a
// table (operators_*.cpp): its name, its text in PyTorch and in Triton, its shape rule, its domain and what it does to
// numbers. Everything else (broadcasting, masks, kernels, dtypes, fusion) follows from the kind of work it does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/synth/tensor_graph.h"

namespace tritonrl::graphs {

class Draft;

// Where an operator may be applied, so that no draw of the inputs can overflow or leave its domain.
enum class Domain {
  kAny,
  kSmall,        // x at most 6: exponentials.
  kNotNegative,  // x at least 0.
  kPositive,     // x at least 0.1; nearer to 0 a root or logarithm would magnify rounding errors.
  kDivisor,      // The last operand at least 0.1 (it is drawn from [0.5, 1.5)).
};

// What kind of kernel an operator needs.
enum class Work {
  kPointwise,  // Each element from the operands' elements at the same (broadcast) place. Fuses with everything.
  kMove,       // Each element from one element elsewhere. Becomes index arithmetic of whoever reads it.
  kRow,        // Along one or more dimensions: reductions, softmax, norms, scans. One program per row.
  kWindow,     // Pooling: a loop over a window.
  kGemm,       // Tiles of a matrix product.
  kConv,       // Convolutions.
  kOther,      // No kernel of ours: its tasks come without a solution.
};

// Shape rule: adds a node that applies `op` to node x (and what else it takes) to the draft, with the attributes it
// draws. -1 when it cannot be applied: wrong rank, dtype, divisibility, or a domain that x may leave.
using Build = int (*)(Draft& draft, const Operator& op, int x);

struct Operator {
  std::string name;    // For task names, filters and statistics: "leaky_relu".
  std::string family;  // "elementwise", "compare", "reduction", "softmax", "norm", "loss", "scan", "pool", "movement",
                       // "matmul", "conv", "cast".
  Work work = Work::kOther;
  Build build = nullptr;
  int arity = 1;  // Tensors it takes; parameters of modules are not counted.
  // Templates. Operands {x} {y} {z}, attributes {a} {b}, node.ints by name ({kernel}), {dim} {keepdim} {self} (module).
  std::string torch;
  std::vector<std::string> forms;  // Other ways to write `torch`; Draft::write() draws one, with {window} filled in.
  // Pointwise: an expression. Row: statements and, as the last line, the expression of the result, with {m} (x with
  // `fill` where the mask is off), {m2} (the same of y), {t} {t2} (free names), {n} (length of the row), {i} (position
  // in the row), {ax} (the argument that names the axis). Window: the update of `acc` by `v`. "" = not covered.
  std::string triton;
  std::string fill = "0.0";  // Row: neutral element. Window: start of acc.
  std::string finish;        // Window: the result in terms of acc.
  bool then_mean = false;    // Losses: reduced over everything afterwards, by mean or sum (ints["sum"]).
  Domain domain = Domain::kAny;
  bool jumps = false;        // Not continuous: only ever applied to an input as it is, where rounding flips nothing.
  bool commutative = false;  // y and x may be swapped.
  bool core = false;         // Of the small set that a small policy learns in minutes.
  bool varied_only = false;  // Style plain does not draw it.
  bool scalar_rows = false;  // Row: one number per row, the dimensions go or become 1.
  std::vector<std::vector<double>> attributes = {{}};
  double (*value)(const double* operands, const double* attributes) = nullptr;              // Pointwise, on numbers.
  std::vector<double> (*row)(std::vector<double> row, const double* attributes) = nullptr;  // Row: same length, or 1.
  double growth = 0;   // Row: the result of a row of n numbers grows as n^growth.
  int64_t weight = 4;  // How often it is drawn.
};

// All operators, in a fixed order: their position is part of what a seed means, so new ones go to the end of a table.
const std::vector<Operator>& operators();
// Also those that only recorded graphs have. Null when there is none.
const Operator* find_operator(const std::string& name);

using OperatorSet = std::vector<const Operator*>;
// Operators by words: "all", "core", a family, or a name; in the table's order. Throws Error (usage) for another word,
// which names the key that has it.
OperatorSet select_operators(const std::vector<std::string>& words, const std::string& key = "operators");

// "0.1", "-2.0": a Python float that is as short as it can be.
std::string python_float(double value);
// Fills a template; operands and attributes in order.
std::string fill_template(std::string text, const std::vector<std::string>& operands,
                          const std::vector<double>& attributes);

// Tables, one a file. Internal.
std::vector<Operator> pointwise_operators();
std::vector<Operator> row_operators();
std::vector<Operator> structure_operators();     // Movement, pooling, matrix products, convolutions, norms, losses.
std::vector<Operator> recorded_operators();      // In no drawn graph; see recorded_graph.h of the room verify.
double log_sum(const std::vector<double>& row);  // log(sum(exp(v))), where exp itself would overflow, too.

}  // namespace tritonrl::graphs
