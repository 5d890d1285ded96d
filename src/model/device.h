// SPDX-License-Identifier: Apache-2.0
// Where a model lives. CUDA libraries are opened only when a device is asked for and a driver is there, so one binary
// starts in a tenth of a second on any machine.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "base/enum_names.h"
#include "base/error.h"

namespace tritonrl {

// "cpu", "cuda", "cuda:1" or "auto" (a GPU when there is one). Loads LibTorch's CUDA library on first need.
// Throws Error (environment) when a GPU is asked for and none can be used.
at::Device open_device(const std::string& name);
// Registers LibTorch's CUDA backend with its dispatcher, once. Returns nothing, or the reason why not: no driver, one
// that is too old, no GPU.
std::optional<Error> load_cuda_backend();

enum class ComputeType { kAuto, kBf16, kFp32 };  // auto = bf16.
constexpr auto enum_names(ComputeType) { return std::array{"auto", "bf16", "fp32"}; }
at::ScalarType compute_dtype(ComputeType type);

// Blocks until what this thread began on `device` is done. Nothing on the CPU.
void wait_for(const at::Device& device);

// Gives memory of a GPU that no tensor holds back to the driver, for other processes on it. Nothing on the CPU.
void give_back_memory(const at::Device& device);

// While it lives, what this thread does on `device` is in a stream of its own, beside what other threads do there (but
// for others that have one of these: they share it). Tensors that cross over must be complete (wait_for). Nothing on
// the CPU.
class OwnStream {
 public:
  explicit OwnStream(const at::Device& device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  std::optional<c10::Stream> before_;
};

// Is there an NVIDIA driver on this machine? Does not load anything heavy.
bool has_cuda_driver();

}  // namespace tritonrl
