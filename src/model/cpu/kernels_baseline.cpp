// SPDX-License-Identifier: Apache-2.0
// The CPU kernels compiled for one instruction set (flags: CMakeLists.txt).
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "model/cpu/kernels.h"

namespace tritonrl::cpu {
namespace baseline {
#include "model/cpu/kernels_impl.inc"
}  // namespace baseline

Kernels kernels_baseline() { return baseline::make_kernels("baseline"); }

}  // namespace tritonrl::cpu
