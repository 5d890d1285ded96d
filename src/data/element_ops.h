// SPDX-License-Identifier: Apache-2.0
// ElementOp: one element-wise operator in three languages: PyTorch, Triton, and plain arithmetic for checks.
//
// The same operator always becomes the same Triton expression, whatever stands around it. That is what lets a small
// policy solve combinations it was never shown.
#pragma once

#include <string>
#include <vector>

namespace tritonrl {

// Where an operator may be applied, so that no draw of the inputs can overflow or leave its domain.
enum class Domain {
  kAny,
  kSmall,        // x at most 6: exponentials.
  kNotNegative,  // x at least 0.
  kPositive,     // x at least 0.1; nearer to 0 a root or logarithm would magnify rounding errors.
  kDivisor,      // The last operand at least 0.1 (it is drawn from [0.5, 1.5)).
};

struct ElementOp {
  std::string name;  // For task names and configs, e.g. "leaky_relu".
  bool core;         // Part of the small set `operators: core`.
  int arity;         // Operands: 1 to 3, called x, y and z in the templates.
  Domain domain;
  bool commutative;   // y and x may be swapped.
  bool jumps;         // Not continuous: only ever applied to an input as it is, where rounding cannot flip a value.
  std::string torch;  // Templates: {x} {y} {z} are operands, {a} {b} attributes.
  std::string triton;
  std::string graph_name;                       // Operator in the graph; "" = name. Synonyms share one.
  std::vector<std::vector<double>> attributes;  // Values to choose from; one empty list when there are none.
  double (*value)(const double* operands, const double* attributes);
};

// All operators, in a fixed order (their position is part of what a seed means).
const std::vector<ElementOp>& element_ops();
// REQUIRES: exists.
const ElementOp& element_op(const std::string& name);

// "0.1", "-2.0": a Python float that is as short as it can be.
std::string python_float(double value);
// Fills a template; operands and attributes in order.
std::string fill_template(std::string text, const std::vector<std::string>& operands,
                          const std::vector<double>& attributes);

}  // namespace tritonrl
