// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/compare.h"

#include <algorithm>

namespace tritonrl {
namespace {

// Unit roundoffs: float64 1.1e-16, float32 6e-8, float16 4.9e-4, bfloat16 3.9e-3. `relative` of float32 leaves room for
// a chain of a GPU's fast functions (a few roundings each), and none for float16 anywhere on the way (rms
// error 2.8e-4). For the 16-bit types the last rounding dominates: about eight of them at worst, two on average.
ErrorTolerance own_tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return {1e-12, 5e-13, 1e-6, 2.3e-308};
    case Dtype::kFloat32:
      return {1e-5, 5e-6, 1e-2, 1.2e-38};
    case Dtype::kFloat16:
      return {4e-3, 1e-3, 5e-2, 6e-8};  // Subnormals are exact on every GPU.
    default:
      return {3.2e-2, 8e-3, 2e-1, 1.2e-38};
  }
}

double share_of_rms(Dtype dtype, Precision precision) {
  if (dtype == Dtype::kFloat64) return 1e-9;
  if (dtype != Dtype::kFloat32) return own_tolerance(dtype).relative;
  // TF32 has float16's bits. Of 1.3e9 sums of products in TF32, 0.06 % were off by more than 9e-4 of their rms.
  return precision == Precision::kProducts ? own_tolerance(Dtype::kFloat16).relative : 1e-4;
}

}  // namespace

ErrorTolerance undisturbed(ErrorTolerance tolerance, Dtype dtype, Precision precision) {
  double share = share_of_rms(dtype, precision);
  tolerance.relative = std::max(tolerance.relative, share);
  tolerance.of_rms = std::max(tolerance.of_rms, share);
  tolerance.rms_floor = std::max(tolerance.rms_floor, 0.3 * share);
  return tolerance;
}

ErrorTolerance error_tolerance(Dtype dtype, Precision precision) {
  ErrorTolerance own = own_tolerance(dtype), half = own_tolerance(Dtype::kFloat16);
  switch (precision) {
    case Precision::kKernelBench: {  // get_tolerance_for_precision() of their eval.py, commit 0d12226.
      bool wide = dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64;
      double a = wide ? 1e-4 : 1e-2;
      return {a, 0, 0, 0, 0, a, true};
    }
    case Precision::kOther:
      if (dtype != Dtype::kFloat16) return own;
      [[fallthrough]];
    case Precision::kOtherProducts: {
      double relative = std::max(own.relative, 2 * half.relative);
      return {relative, std::max(own.rms_floor, 2 * half.rms_floor), std::max(own.cap, 2 * half.cap), own.quantum,
              relative};
    }
    case Precision::kProducts:  // The rest is what ten bits do to the reference, which a later step may enlarge.
      own.cap = std::max(own.cap, half.cap);
      return own;
    default:
      return own;
  }
}

}  // namespace tritonrl
