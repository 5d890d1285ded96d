// SPDX-License-Identifier: Apache-2.0
#include "verify/execute/compare.h"

#include <algorithm>

namespace tritonrl {

// Unit roundoffs: float64 1.1e-16, float32 6e-8, float16 4.9e-4, bfloat16 3.9e-3. The floors of float32 leave room for
// sums of a million terms in another order and for fast exponentials, and none for float16 anywhere on the way
// (rms error 1.4e-4). For the 16-bit types the last rounding dominates: about eight of them at worst, two on average.
ErrorTolerance error_tolerance(Dtype dtype, Precision precision) {
  if (precision == Precision::kOtherProducts || (precision == Precision::kOther && dtype == Dtype::kFloat16)) {
    ErrorTolerance own = error_tolerance(dtype), half = error_tolerance(Dtype::kFloat16);
    return {std::max(own.floor, 2 * half.floor), std::max(own.rms_floor, 2 * half.rms_floor),
            std::max(own.cap, 2 * half.cap), own.quantum};
  }
  switch (dtype) {
    case Dtype::kFloat64:
      return {1e-9, 1e-10, 1e-6, 4.9e-324};
    case Dtype::kFloat32:
      return {1e-4, 3e-5, 1e-2, 1.4e-45};
    case Dtype::kFloat16:
      return {4e-3, 1e-3, 5e-2, 6e-8};
    default:
      return {3.2e-2, 8e-3, 2e-1, 9.2e-41};
  }
}

}  // namespace tritonrl
