// SPDX-License-Identifier: Apache-2.0
// The GPUs that kernels are compiled for.
#include "verify/trace/target_gpu.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl::target_gpu_test {
namespace {

TEST(TargetGpu, EachArchitectureHasATypicalOne) {
  for (int64_t arch : known_architectures()) EXPECT_EQ(typical_gpu(arch).arch, arch);
  EXPECT_EQ(known_architectures(), (std::vector<int64_t>{80, 86, 89, 90, 100, 103, 120}));
  EXPECT_EQ(typical_gpu(90), TargetGpu());
  EXPECT_THROW(typical_gpu(91), Error);
}

TEST(TargetGpu, SurvivesJson) {
  TargetGpu gpu = typical_gpu(120);
  EXPECT_EQ(target_gpu_from(to_json(gpu)), gpu);
}

TEST(TargetGpu, OlderOnesAreRefused) {
  TargetGpu gpu = typical_gpu(80);
  EXPECT_NO_THROW(insist_on_support(gpu, "cuda:0"));
  gpu.arch = 75;
  EXPECT_THROW(insist_on_support(gpu, "cuda:0"), Error);
}

std::string image(char abi, uint32_t flags) {
  std::string bytes(64, '\0');
  bytes.replace(0, 5,
                "\x7f"
                "ELF\x02");
  bytes[8] = abi;
  for (size_t i = 0; i < 4; ++i) bytes[0x30 + i] = static_cast<char>(flags >> 8 * i & 0xff);
  return bytes;
}

// As ptxas of CUDA 12.8 writes them.
TEST(TargetGpu, CubinsSayWhatTheyAreFor) {
  EXPECT_EQ(architecture_of(image(7, 0x500550)), 80);
  EXPECT_EQ(architecture_of(image(7, 0x5a0d5a)), 90);
  EXPECT_EQ(architecture_of(image(8, 0x900640a)), 100);
  EXPECT_EQ(architecture_of(image(8, 0x900670a)), 103);
  EXPECT_EQ(architecture_of(image(8, 0x900780a)), 120);
  EXPECT_EQ(architecture_of("\x7f"
                            "ELF\x02"),
            0);
  EXPECT_EQ(architecture_of(std::string(64, 'x')), 0);
}

}  // namespace
}  // namespace tritonrl::target_gpu_test
