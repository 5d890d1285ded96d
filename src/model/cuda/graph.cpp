// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/graph.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace tritonrl::cuda {
namespace {

constexpr const char* kModule = "libtritonrl_cuda_graph.so";

// The module lies beside the program, or one folder above programs of tests.
void* open_maker() {
  const char* wanted = std::getenv("TRITONRL_CUDA_GRAPHS");
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path()}) {
    auto path = folder / kModule;
    if (!std::filesystem::exists(path, error)) continue;
    if (void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return ::dlsym(module, "tritonrl_cuda_graphs");
    log_warn(cat("cannot open ", path.string(), ": ", ::dlerror(), "; generation will be slower"));
    return nullptr;
  }
  log_warn(cat(kModule, " is not beside the program: generation will be slower"));
  return nullptr;
}

}  // namespace

std::unique_ptr<Graphs> make_graphs(const c10::Device& device) {
  if (device.is_cpu()) return nullptr;
  static const auto make = reinterpret_cast<Graphs* (*)(int8_t)>(open_maker());
  return std::unique_ptr<Graphs>(make ? make(device.index()) : nullptr);
}

}  // namespace tritonrl::cuda
