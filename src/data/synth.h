// SPDX-License-Identifier: Apache-2.0
// The synthesiser: PyTorch modules with Triton solutions, made from recipes (data/recipe.h), the same for the same
// seed.
//
// Level 1 is one operation; there are a few hundred of them (operators x attributes x broadcasts x dimensions), listed
// whole and then dealt out. Level 2 is a fusion of two or more, drawn at random and never twice the same graph. Sizes
// keep one launch at 32 programs or fewer, because Triton's interpreter takes about 1 ms a program. Solutions are
// correct by construction and still have to pass the verifier before anyone trains on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/recipe.h"
#include "data/task.h"

namespace tritonrl {

// How often each family is drawn, relative to the others; 0 leaves it out.
struct FamilyWeights {
  int64_t elementwise = 4;  // Chains of unary, binary and scalar operators.
  int64_t reduction = 2;    // Sums, means, extremes, norms, logsumexp, variances.
  int64_t softmax = 1;      // softmax, softmin, log_softmax.
  int64_t norm = 1;         // layer norm, RMS norm, normalisation to length 1.
  int64_t gemm = 1;         // Matrix products and linear layers with epilogues.
  template <class V>
  void for_each_field(V& v) {
    v("elementwise", elementwise, "element-wise chains");
    v("reduction", reduction, "reductions of rows or columns, with fused steps");
    v("softmax", softmax, "softmax kinds, with fused steps");
    v("norm", norm, "normalisations, with fused steps");
    v("gemm", gemm, "matrix products, with epilogues");
  }
  void validate() const;
};

enum class OperatorSet { kCore, kAll };
constexpr auto enum_names(OperatorSet) { return std::array{"core", "all"}; }

struct SynthConfig {
  int64_t seed = 7;
  OperatorSet operators = OperatorSet::kCore;  // A small policy learns 25 operators in minutes; 50 need more examples.
  int64_t max_steps = 3;                       // Longest element-wise chain of a level-2 task.
  FamilyWeights families;
  template <class V>
  void for_each_field(V& v) {
    v("seed", seed, "names the whole task set");
    v("operators", operators, "element-wise operators to use");
    v("max_steps", max_steps, "operations of the longest element-wise chain");
    v("families", families, "relative shares of the families");
  }
  void validate() const;
};

// Every level-1 recipe of the families with a weight, each with a graph of its own, in a fixed order.
std::vector<Recipe> level1_recipes(const SynthConfig& config);

// `count_level1` tasks of level 1, then `count_level2` of level 2. Graphs of level 1 come again, at other sizes, only
// after all were used; graphs of level 2 never do. Throws Error (usage) when there are not that many level-2 graphs to
// find.
std::vector<Task> synthesise(const SynthConfig& config, int64_t count_level1, int64_t count_level2);

}  // namespace tritonrl
