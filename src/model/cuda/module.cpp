// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace tritonrl::cuda {

void* symbol_of(const char* file, const char* variable, const char* name) {
  const char* wanted = std::getenv(variable);
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path()}) {  // Programs of tests lie one folder below.
    auto path = folder / file;
    if (!std::filesystem::exists(path, error)) continue;
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) {
      log_warn(cat("cannot open ", path.string(), ": ", ::dlerror(), "; generation and training will be slower"));
      return nullptr;
    }
    return ::dlsym(module, name);
  }
  log_warn(cat(file, " was not built: generation and training will be slower"));
  return nullptr;
}

}  // namespace tritonrl::cuda
