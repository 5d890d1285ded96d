// SPDX-License-Identifier: Apache-2.0
// Compare: is what a candidate returned the same as the reference, up to honest rounding?
//
// Structure, shapes and dtypes must be equal. Integers and booleans must be equal. For floating-point outputs let
//   t = the reference computed in float64 (the truth), r = the reference in its own dtype, c = the candidate's output,
//   scale_i = |t_i| + rms(t)            a unit that neither punishes small elements of a large tensor (they carry the
//                                       rounding of what they were summed from) nor forgives large ones,
//   ref_max = max_i |r_i - t_i| / scale_i,   ref_rms = rms(r - t) / rms(t)    the reference's own error.
// The candidate passes when both hold:
//   worst element:  |c_i - t_i| <= min(max(kWorstFactor * ref_max, floor), cap) * scale_i + quantum   for every i
//   as a whole:     rms(c - t)  <= min(max(kRmsFactor * ref_rms, rms_floor), cap) * rms(t) + quantum
// floor, rms_floor and cap belong to the dtype (a few of its roundings; see compare.cpp); quantum is its smallest
// subnormal. The first test catches a single wrong element, the second work done in too low a precision.
// Where the truth is NaN or infinite the candidate must be so too; where it is finite, the candidate must be finite.
//
// The comparison itself runs in the judge (verify/judge/compare_device.h); here is what everybody needs to know of it.
#pragma once

#include <string>

#include "verify/sandbox/blob.h"
#include "verify/verdict.h"

namespace tritonrl {

constexpr double kWorstFactor = 8;
constexpr double kRmsFactor = 4;

// kOwn: the outputs' own dtype decides.
// kOther: a kernel tried in another precision than the one it was written for. The same, but twice that in half
//         precision: what it keeps between its steps may be rounded there too.
// kOtherProducts: as kOther, and float32 gets at least half precision's tolerance: products round their operands to ten
//         bits (TF32, unless Triton is told otherwise).
enum class Precision { kOwn, kOther, kOtherProducts };

// Per dtype; see the formulas above.
struct ErrorTolerance {
  double floor, rms_floor, cap, quantum;
};
ErrorTolerance error_tolerance(Dtype dtype, Precision precision = Precision::kOwn);

struct Comparison {
  Finding finding;   // Which output and element, expected, got; kPass when it passed.
  double worst = 0;  // Largest error in units of what is allowed; <= 1 passes.

  bool passed() const { return finding.passed(); }
};

}  // namespace tritonrl
