// SPDX-License-Identifier: Apache-2.0
// Signal: what values a running value may take while a recipe is being made, so that no recipe overflows, leaves an
// operator's domain, or has a step that does nothing.
//
// Two views of the same value: a range that no draw of the inputs should leave (built from +-5 for N(0, 1)), which
// decides whether an operator is safe; and a few rows of samples, which decide whether it matters. Whether the solution
// computes the same as the source is not decided here: that is the verifier's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/recipe.h"

namespace tritonrl {

struct Signal {
  static constexpr int64_t kRows = 16;
  std::vector<double> samples;  // kRows rows, each of the same length (1 after a reduction).
  double low = 0, high = 0;     // Range.

  // Draws of the input number `index`: N(0, 1), or uniform in [0.5, 1.5). Always the same draws, made once.
  static const Signal& input(size_t index, bool positive);
  // A value of standard deviation `deviation` about 0, as a matrix product gives.
  static Signal product(double deviation);
};

// The signal after a step, or nothing when the step is unsafe on this range, leaves the value (nearly) as it was,
// ignores an operand, or gives a (nearly) constant. After a reduction, which leaves few values, also when it saturates
// many of them.
std::optional<Signal> apply_step(const Step& step, const Signal& x, const std::vector<const Signal*>& others);

// The signal after a reduction, softmax or norm along the last dimension (statistics along the first are the same), or
// nothing when a reduction gives a (nearly) constant or vanishing value.
std::optional<Signal> apply_row_core(const Core& core, const Signal& x);

}  // namespace tritonrl
