// SPDX-License-Identifier: Apache-2.0
// TargetGpu: the GPU that a candidate's kernels are compiled for, and what its host code is told where it asks.
//
// It is the one that will run them. Where there is none, a typical one of the architecture that the config names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/json.h"

namespace tritonrl {

struct TargetGpu {
  int64_t arch = 90;  // 90 = compute capability 9.0.
  std::string name = "NVIDIA H100";
  int64_t memory = int64_t{80} << 30;  // Bytes, here and below.
  int64_t multiprocessors = 132;
  int64_t shared = 232448;  // That a block may have.
  int64_t shared_per_multiprocessor = 233472;
  int64_t threads_per_multiprocessor = 2048;
  int64_t l2 = int64_t{50} << 20;
  bool operator==(const TargetGpu&) const = default;
};

constexpr int64_t kOldestArchitecture = 80;
// Those that have a typical GPU here, ascending.
const std::vector<int64_t>& known_architectures();
TargetGpu typical_gpu(int64_t arch);  // Throws Error (usage) for one that has none.
// Throws Error (environment) where Triton's kernels cannot run on it. `device`: "cuda:0".
void insist_on_support(const TargetGpu& gpu, const std::string& device);

Json to_json(const TargetGpu& gpu);
TargetGpu target_gpu_from(const Json& json);  // Of to_json(); throws nlohmann's errors.

// What a cubin (an ELF file) says it was compiled for; 0 = it says nothing that is understood.
int64_t architecture_of(std::string_view cubin);

}  // namespace tritonrl
