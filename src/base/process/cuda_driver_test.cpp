// SPDX-License-Identifier: Apache-2.0
#include "base/process/cuda_driver.h"

#include <gtest/gtest.h>

namespace tritonrl::cuda_driver_test {
namespace {

TEST(CudaDriver, IsOldWhereItsMajorVersionIs) {
  EXPECT_FALSE(driver_too_old(13000, 13000));
  EXPECT_FALSE(driver_too_old(13000, 13020)) << "minor versions are compatible";
  EXPECT_FALSE(driver_too_old(14010, 13000));
  EXPECT_FALSE(driver_too_old(0, 13000)) << "nobody knows";
  auto old = driver_too_old(12040, 13000);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->message(), "the NVIDIA driver supports CUDA 12.4, and this program was built for CUDA 13.0");
  EXPECT_EQ(old->hint(),
            "update the driver to 580 or newer, or build against torch's wheel for CUDA 12.x (see pytorch.org)");
  EXPECT_EQ(old->exit_code(), 3);
}

TEST(CudaDriver, MayBeAskedWhereThereIsNone) { EXPECT_GE(driver_cuda_version(), 0); }

}  // namespace
}  // namespace tritonrl::cuda_driver_test
