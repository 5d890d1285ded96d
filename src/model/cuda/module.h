// SPDX-License-Identifier: Apache-2.0
// The program's parts that need CUDA to link lie beside it as modules, so that it starts on any machine.
#pragma once

namespace tritonrl::cuda {

// A function of the module `file`, which lies beside the program or one folder above it. Null, with a warning, where it
// does not or cannot be opened; null in silence where the environment's `variable` is 0. Call after open_device
// (model/device.h): the CUDA libraries that a module needs are those which that has opened.
void* symbol_of(const char* file, const char* variable, const char* name);

}  // namespace tritonrl::cuda
