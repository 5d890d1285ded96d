// SPDX-License-Identifier: Apache-2.0
// The kernels' source, without a GPU; tests/gpu_ops_test.cpp has what they compute.
#include "model/cuda/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tritonrl::cuda_kernels_test {
namespace {

TEST(CudaKernels, CompileForEveryArchitecture) {
  if (!has_nvrtc()) GTEST_SKIP() << "libnvrtc is not here; tools/setup.sh brings it with torch";
  EXPECT_EQ(cuda::program().kernels.size(), 35u);
  for (int capability : {80, 90, 100}) {
    Cubin cubin = compile_cuda(cuda::program(), capability, "");
    EXPECT_EQ(cubin.symbols.size(), cuda::program().kernels.size());
    for (const auto& [kernel, symbol] : cubin.symbols) {
      EXPECT_THAT(cubin.image, testing::HasSubstr(symbol)) << kernel << " for sm_" << capability;
    }
  }
}

TEST(CudaKernels, ThereAreNoneOnTheCpu) { EXPECT_EQ(cuda::kernels(at::Device(at::kCPU)), nullptr); }

}  // namespace
}  // namespace tritonrl::cuda_kernels_test
