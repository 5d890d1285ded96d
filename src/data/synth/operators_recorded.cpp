// SPDX-License-Identifier: Apache-2.0
// Operators that only recorded modules have. The stream draws none of them, so that they change no seed's tasks.
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

Operator made(const char* name, const char* family, Work work, const char* triton, int arity = 1) {
  Operator op;
  op.name = name;
  op.family = family;
  op.work = work;
  op.triton = triton;
  op.arity = arity;
  return op;
}

// One number of each row.
Operator row(const char* name, const char* triton) {
  Operator op = made(name, "reduction", Work::kRow, triton);
  op.scalar_rows = true;
  return op;
}

}  // namespace

std::vector<Operator> recorded_operators() {
  return {
      made("fill", "elementwise", Work::kPointwise, "{a}", 0),  // The same number everywhere.
      // x times a size to the power of {a}; the size is in module_dims, and the wrapper computes the factor.
      made("scale", "elementwise", Work::kPointwise, "{x} * {scale}"),
      made("pow_integer", "elementwise", Work::kPointwise, "{power}"),  // ints["exponent"], 2 to 8.
      made("eq_scalar", "compare", Work::kPointwise, "tl.where({x} == {a}, 1.0, 0.0)"),
      made("ne_scalar", "compare", Work::kPointwise, "tl.where({x} != {a}, 1.0, 0.0)"),
      made("ge_scalar", "compare", Work::kPointwise, "tl.where({x} >= {a}, 1.0, 0.0)"),
      made("le_scalar", "compare", Work::kPointwise, "tl.where({x} <= {a}, 1.0, 0.0)"),
      made("eq", "compare", Work::kPointwise, "tl.where({x} == {y}, 1.0, 0.0)", 2),
      made("ge", "compare", Work::kPointwise, "tl.where({x} >= {y}, 1.0, 0.0)", 2),
      made("lt", "compare", Work::kPointwise, "tl.where({x} < {y}, 1.0, 0.0)", 2),
      made("masked_fill_mask", "compare", Work::kPointwise, "tl.where({y} != 0.0, {a}, {x})", 2),
      made("where_mask", "compare", Work::kPointwise, "tl.where({x} != 0.0, {y}, {z})", 3),
      made("batch_norm_plain", "norm", Work::kPointwise, "({x} - {p0}) / tl.sqrt({p1} + {a})"),
      row("var_unbiased",
          "{t} = tl.sum({m}{ax}) / {n}\n{t2} = tl.where({mask}, {m} - {t}, 0.0)\ntl.sum({t2} * {t2}{ax}) / ({n} - 1)"),
      row("std_biased",
          "{t} = tl.sum({m}{ax}) / {n}\n{t2} = tl.where({mask}, {m} - {t}, 0.0)\n"
          "tl.sqrt(tl.sum({t2} * {t2}{ax}) / {n})"),
      made("view", "movement", Work::kMove, ""),        // Another shape of as many elements.
      made("part", "movement", Work::kMove, ""),        // From module_dims[0] on, as long as the result is.
      made("diag_embed", "movement", Work::kMove, ""),  // A matrix with the operand on its diagonal.
      made("causal_mask", "movement", Work::kMove, ""),
  };
}

}  // namespace tritonrl::graphs
