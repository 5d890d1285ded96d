// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/target_gpu.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

// Shared memory and threads: CUDA C++ Programming Guide 13.0, table of compute capabilities. The rest: data sheets.
const std::vector<TargetGpu>& typical_gpus() {
  static const std::vector<TargetGpu> gpus = {
      {80, "NVIDIA A100-SXM4-80GB", 80 * kGiB, 108, 166912, 167936, 2048, 40 * kMiB},
      {86, "NVIDIA A10", 24 * kGiB, 72, 101376, 102400, 1536, 6 * kMiB},
      {89, "NVIDIA L4", 24 * kGiB, 58, 101376, 102400, 1536, 48 * kMiB},
      {},
      {100, "NVIDIA B200", 180 * kGiB, 148, 232448, 233472, 2048, 126 * kMiB},
      {103, "NVIDIA B300", 270 * kGiB, 148, 232448, 233472, 2048, 126 * kMiB},
      {120, "NVIDIA GeForce RTX 5090", 32 * kGiB, 170, 101376, 102400, 1536, 96 * kMiB},
  };
  return gpus;
}

}  // namespace

const std::vector<int64_t>& known_architectures() {
  static const std::vector<int64_t> all = [] {
    std::vector<int64_t> list;
    for (const TargetGpu& gpu : typical_gpus()) list.push_back(gpu.arch);
    return list;
  }();
  return all;
}

TargetGpu typical_gpu(int64_t arch) {
  auto found = std::ranges::find(typical_gpus(), arch, &TargetGpu::arch);
  if (found != typical_gpus().end()) return *found;
  std::vector<std::string> names;
  for (int64_t one : known_architectures()) names.push_back(cat(one));
  throw usage_error(cat("verify.arch is ", arch), "", cat("one of ", join(names, ", "), "; 90 is an H100's"));
}

void insist_on_support(const TargetGpu& gpu, const std::string& device) {
  if (gpu.arch >= kOldestArchitecture) return;
  throw environment_error(
      cat(device, " (", gpu.name, ") has compute capability ", gpu.arch / 10, ".", gpu.arch % 10), "",
      "8.0 (A100) is the oldest that is supported; CUDA_VISIBLE_DEVICES can leave it out, and verify.gpus: 0 verifies "
      "on the CPU");
}

Json to_json(const TargetGpu& gpu) {
  return {{"arch", gpu.arch},
          {"name", gpu.name},
          {"memory", gpu.memory},
          {"multiprocessors", gpu.multiprocessors},
          {"shared", gpu.shared},
          {"shared_per_multiprocessor", gpu.shared_per_multiprocessor},
          {"threads_per_multiprocessor", gpu.threads_per_multiprocessor},
          {"l2", gpu.l2}};
}

TargetGpu target_gpu_from(const Json& json) {
  return {json.at("arch").get<int64_t>(),
          json.at("name").get<std::string>(),
          json.at("memory").get<int64_t>(),
          json.at("multiprocessors").get<int64_t>(),
          json.at("shared").get<int64_t>(),
          json.at("shared_per_multiprocessor").get<int64_t>(),
          json.at("threads_per_multiprocessor").get<int64_t>(),
          json.at("l2").get<int64_t>()};
}

// By e_flags: ptxas wrote the architecture into the lowest byte up to version 7 of its ABI, and into the next one from
// version 8 on (looked at in cubins of CUDA 12.8's ptxas for 7.5 to 12.1).
int64_t architecture_of(std::string_view cubin) {
  constexpr size_t kAbiVersion = 8, kFlags = 0x30;
  if (cubin.size() < 64 || cubin.substr(0, 5) !=
                               "\x7f"
                               "ELF\x02")
    return 0;
  uint32_t flags = 0;
  std::memcpy(&flags, cubin.data() + kFlags, sizeof flags);
  return static_cast<unsigned char>(cubin[kAbiVersion]) >= 8 ? flags >> 8 & 0xff : flags & 0xff;
}

}  // namespace tritonrl
