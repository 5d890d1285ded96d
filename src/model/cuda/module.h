// SPDX-License-Identifier: Apache-2.0
// Parts that need LibTorch's CUDA libraries to link are modules, opened when a GPU is first used, so that the program
// itself starts on any machine.
#pragma once

#include <string>

namespace tritonrl::cuda {

// The address of `symbol` in a module that lies beside the program (or one folder above programs of tests). Null, with
// a warning that says what it means (`without`), where it is not there or cannot be opened.
void* module_symbol(const std::string& file, const char* symbol, const std::string& without);

}  // namespace tritonrl::cuda
