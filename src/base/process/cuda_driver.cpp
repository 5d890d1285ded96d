// SPDX-License-Identifier: Apache-2.0
#include "base/process/cuda_driver.h"

#include <dlfcn.h>

#include "base/text.h"

namespace tritonrl {
namespace {

std::string dotted(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

}  // namespace

int driver_cuda_version() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return 0;
  auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

std::optional<Error> driver_too_old(int driver, int built) {
  if (driver == 0 || driver / 1000 >= built / 1000) return std::nullopt;
  const std::string wheel = cat("torch's wheel for CUDA ", driver / 1000, ".x (see pytorch.org)");
  return environment_error(
      cat("the NVIDIA driver supports CUDA ", dotted(driver), ", and this program was built for CUDA ", dotted(built)),
      "", cat("update the driver", built / 1000 == 13 ? " to 580 or newer" : "", ", or build against ", wheel));
}

}  // namespace tritonrl
