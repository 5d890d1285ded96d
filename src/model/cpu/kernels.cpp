// SPDX-License-Identifier: Apache-2.0
#include "model/cpu/kernels.h"

#include <cstdlib>
#include <cstring>

namespace tritonrl::cpu {

Kernels kernels_baseline();
Kernels kernels_avx2();
Kernels kernels_avx512();

const Kernels& kernels() {
  static const Kernels chosen = [] {
    const char* forced = std::getenv("TRITONRL_ISA");  // For tests: a weaker set than the processor's.
    auto allowed = [&](const char* name) { return !forced || std::strcmp(forced, name) == 0; };
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bf16");
    if (wide && allowed("avx512")) return kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && allowed("avx2")) return kernels_avx2();
    return kernels_baseline();
  }();
  return chosen;
}

}  // namespace tritonrl::cpu
