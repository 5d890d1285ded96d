// SPDX-License-Identifier: Apache-2.0
// Recipe: a synthesised task before it is text. It knows its operation graph, its PyTorch source and its Triton
// solution.
//
// Every recipe is: element-wise steps `before`, at most one `core` (a reduction, softmax, norm or matrix product),
// steps `after`. Source and kernel both keep the running value in `x` and both have one line for one step, so each line
// of the one is the translation of a line of the other. One kernel skeleton a family:
//   element-wise        one program for 1024 elements;
//   reduction .. norm   one program for a row (or, along the first dimension, a column), read in one block;
//   gemm                one program for a 32 x 32 tile of the product.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/element_ops.h"
#include "data/op_graph.h"

namespace tritonrl {

enum class Family { kElementwise, kReduction, kSoftmax, kNorm, kGemm };
constexpr int kFamilyCount = 5;
const char* to_string(Family family);  // "elementwise", "reduction", "softmax", "norm", "gemm".

// Shape of an input relative to the running value x of shape (M, N).
enum class Layout {
  kFull,    // (M, N).
  kRow,     // (N,), broadcast over rows.
  kColumn,  // (M, 1), broadcast over columns.
  kLeft,    // Left factor of a matrix product, (M, K) or (K, M).
  kRight,   // Right factor, (K, N) or (N, K).
};

struct RecipeInput {
  Layout layout = Layout::kFull;
  bool positive = false;  // Drawn from [0.5, 1.5) instead of N(0, 1): it is a divisor or goes into a root or logarithm.
};

constexpr int kKeptInput = -1;  // Operand: the first input as it came in (`r = x`).

// x = op(x, others...). An operand is a position in Recipe::inputs, or kKeptInput.
struct Step {
  const ElementOp* op = nullptr;
  std::vector<double> attributes;
  std::vector<int> others;
};

// The operator between the steps.
struct Core {
  std::string
      op;  // "sum" .. "std", "softmax" .., "layer_norm", "rms_norm", "normalize", "matmul", "linear"; "" = none.
  bool first_dim = false;                           // Works along dim 0 instead of the last.
  bool keepdim = false;                             // Reductions.
  bool weight = false;                              // Norms: has a weight parameter.
  bool bias = false;                                // Norms and linear: has a bias parameter.
  double eps = 1e-5;                                // Norms.
  int p = 2;                                        // normalize.
  bool x_transposed = false, y_transposed = false;  // matmul.
};

struct Recipe {
  Family family = Family::kElementwise;
  std::vector<RecipeInput> inputs = {{}};  // The first is x.
  std::vector<Step> before, after;
  Core core;

  std::string name() const;  // "relu_mul_sum".
  OpGraph graph() const;
  // REQUIRES: sizes has M and N, and K for gemm.
  std::string source(const std::map<std::string, int64_t>& sizes) const;
  std::string solution() const;
};

}  // namespace tritonrl
