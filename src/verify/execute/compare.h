// SPDX-License-Identifier: Apache-2.0
// Compare: is what a candidate returned the same as the reference, up to honest rounding?
//
// Structure, shapes and dtypes must be equal. Integers and booleans must be equal. For floating-point outputs let
//   t = the reference computed in float64 (the truth), c = the candidate's output,
//   X = what honest computations give: the reference in its own dtype, and the same again with every operand of every
//       operator moved by a few of its dtype's roundings (judge/disturbance.h); where products in TF32 are allowed,
//       also the reference with their operands cut to TF32's ten bits and rounded to them,
//   e_i = max |x_j - t_j| over x in X and the block of kNoiseBlock elements, in row-major order, that i lies in.
// The candidate passes when both hold:
//   every element:  |c_i - t_i| <= relative * |t_i| + min(kWorstFactor * e_i, cap * (max |t_j| + rms(t))) + quantum
//   as a whole:     rms(c - t) <= max(rms_floor * rms(t), min(kRmsFactor * max over X of rms(x - t), cap * rms(t)))
//                                 + quantum
// relative, rms_floor and cap belong to the dtype (compare.cpp); quantum is its smallest normal number, below which
// GPUs round to zero. So an element counts by its own size where the reference is that accurate there, and by the size
// of what it was summed from where it is a difference of large numbers. The first test catches a single wrong element,
// the second work done in too low a precision. Where the truth is NaN or infinite the candidate must be so too; where
// it is finite, the candidate must be finite. docs/verdicts.md says where this comes from.
//
// Where honest computations themselves are beyond the cap (a gate behind a product of large numbers in TF32), a few
// strays are right: finite, off by at most kStrayError times the largest honest error, and at most kStrays times as
// many as the worst of X has beyond the cap, nor more than one in kStrayShare.
//
// The comparison itself runs in the judge (verify/judge/compare_device.h); here is what everybody needs to know of it.
#pragma once

#include <array>
#include <string>

#include "base/enum_names.h"
#include "verify/finding.h"
#include "verify/sandbox/blob.h"

namespace tritonrl {

constexpr double kWorstFactor = 4;
constexpr double kRmsFactor = 4;
constexpr double kStrayError = 2;
constexpr int64_t kStrays = 8, kStrayShare = 100;
constexpr int kNoiseShift = 4;
constexpr int64_t kNoiseBlock = int64_t{1} << kNoiseShift;

// verify.tolerance: what a candidate's outputs are held to in the precision the task is written in.
// kFp32: the formula above; float32 is float32 everywhere. kTf32: products of float32 matrices may be computed in TF32,
// as tl.dot does unless told otherwise (precision_of() in case_run.h says whose). kKernelBench: theirs, see below.
enum class Tolerance { kFp32, kTf32, kKernelBench };
constexpr auto enum_names(Tolerance) { return std::array{"fp32", "tf32", "kernelbench"}; }

// kOwn: the outputs' own dtype decides.
// kProducts: products may be in TF32.
// kOther: a kernel tried in another precision than the one it was written for. As kOwn, but twice as wide in half
//         precision: what it keeps between its steps may be rounded there too.
// kOtherProducts: as kOther, and float32 gets at least half precision's tolerance: products round their operands to ten
//         bits.
// kKernelBench: |c_i - t_i| <= a + a * |t_i|, with a of the dtype, and nothing else.
enum class Precision { kOwn, kProducts, kOther, kOtherProducts, kKernelBench };

// Per dtype; see the formulas above.
struct ErrorTolerance {
  double relative, rms_floor, cap, quantum;
  double of_rms = 0;    // Every element may be off by so much of rms(t), too.
  double absolute = 0;  // ... and by so much.
  bool fixed = false;   // Whatever the reference's own errors are.
};
ErrorTolerance error_tolerance(Dtype dtype, Precision precision = Precision::kOwn);
// Where the reference could not be disturbed: by what the dtype lets one expect.
ErrorTolerance undisturbed(ErrorTolerance tolerance, Dtype dtype, Precision precision);

struct Comparison {
  Finding finding;   // Which output and element, expected, got; kPass when it passed.
  double worst = 0;  // Largest error in units of what is allowed; <= 1 passes.

  bool passed() const { return finding.passed(); }
};

}  // namespace tritonrl
