// SPDX-License-Identifier: Apache-2.0
// The CPU kernels compiled for one instruction set (flags: CMakeLists.txt).
#include <ATen/Parallel.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "model/cpu/kernels.h"

namespace tritonrl::cpu {
namespace avx2 {
#include "model/cpu/kernels_impl.inc"
}  // namespace avx2

Kernels kernels_avx2() { return avx2::make_kernels("avx2"); }

}  // namespace tritonrl::cpu
