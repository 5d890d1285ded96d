// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/kernels.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace tritonrl::cuda {

namespace {

constexpr char kModule[] = "libtritonrl_cuda.so";

const Kernels* open_module() {
  const char* wanted = std::getenv("TRITONRL_CUDA_KERNELS");
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path()}) {  // Programs of tests lie one folder below.
    auto file = folder / kModule;
    if (!std::filesystem::exists(file, error)) continue;
    // The CUDA runtime it needs is the one that LibTorch has opened: same name, same library.
    void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) {
      log_warn(cat("cannot open ", file.string(), ": ", ::dlerror(), "; generation and training will be slower"));
      return nullptr;
    }
    auto table = reinterpret_cast<const Kernels* (*)()>(::dlsym(module, "tritonrl_cuda_kernels"));
    return table ? table() : nullptr;
  }
  log_warn(cat(kModule, " was not built (no nvcc?): generation and training will be slower"));
  return nullptr;
}

}  // namespace

const Kernels* kernels() {
  static const Kernels* table = open_module();
  return table;
}

}  // namespace tritonrl::cuda
