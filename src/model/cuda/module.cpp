// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/module.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/log.h"
#include "base/text.h"

namespace tritonrl::cuda {

void* module_symbol(const std::string& file, const char* symbol, const std::string& without) {
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path()}) {
    auto path = folder / file;
    if (!std::filesystem::exists(path, error)) continue;
    if (void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return ::dlsym(module, symbol);
    log_warn(cat("cannot open ", path.string(), ": ", ::dlerror(), "; ", without));
    return nullptr;
  }
  log_warn(cat(file, " is not beside the program: ", without));
  return nullptr;
}

}  // namespace tritonrl::cuda
