// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/kernels.h"

#include "model/cuda/module.h"

namespace tritonrl::cuda {

namespace {

const Kernels* open_kernels() {
  auto table = reinterpret_cast<const Kernels* (*)()>(
      symbol_of("libtritonrl_cuda.so", "TRITONRL_CUDA_KERNELS", "tritonrl_cuda_kernels"));
  return table ? table() : nullptr;
}

}  // namespace

const Kernels* kernels() {
  static const Kernels* table = open_kernels();
  return table;
}

}  // namespace tritonrl::cuda
