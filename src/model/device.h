// SPDX-License-Identifier: Apache-2.0
// Where a model lives. CUDA libraries are opened only when a device is asked for and a driver is there, so one binary
// starts in a tenth of a second on any machine.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace tritonrl {

// "cpu", "cuda", "cuda:1" or "auto" (a GPU when there is one). Loads LibTorch's CUDA library on first need.
// Throws Error (environment) when a GPU is asked for and none can be used.
at::Device open_device(const std::string& name);

// "fp32", "bf16", or "auto" (bf16). Throws Error (usage).
at::ScalarType compute_dtype(const std::string& name);

// Is there an NVIDIA driver on this machine? Does not load anything heavy.
bool has_cuda_driver();

}  // namespace tritonrl
