// SPDX-License-Identifier: Apache-2.0
// Between tensors and safetensors files.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "model/files/safetensors.h"

namespace tritonrl {

// A copy of the file's tensor on the CPU, in the file's dtype.
at::Tensor to_tensor(const TensorView& view);
// Describes the tensor for write_safetensors; it is made contiguous and brought to the CPU when its turn comes.
// Throws Error (usage) for a dtype that safetensors has no name for.
TensorToWrite to_write(std::string name, at::Tensor tensor);

}  // namespace tritonrl
