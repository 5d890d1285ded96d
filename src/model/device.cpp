// SPDX-License-Identifier: Apache-2.0
#include "model/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl {

bool has_cuda_driver() { return std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/dev/dxg"); }

namespace {

constexpr char kHint[] = "see `tritonrl doctor`; --set policy.device=auto takes the processor where there is no GPU";

// Registers LibTorch's CUDA backend with the dispatcher. Returns "" or the reason why not.
std::string load_cuda_backend() {
  static const std::string problem = []() -> std::string {
    if (!has_cuda_driver()) return "no NVIDIA driver on this machine";
    for (const char* library : {"libc10_cuda.so", "libtorch_cuda.so"}) {
      if (!::dlopen(library, RTLD_NOW | RTLD_GLOBAL)) return cat("cannot load ", library, ": ", ::dlerror());
    }
    if (!at::globalContext().hasCUDA()) return "LibTorch sees no GPU";
    return "";
  }();
  return problem;
}

}  // namespace

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto" && !has_cuda_driver()) return at::Device(at::kCPU);
  if (name != "auto" && name.rfind("cuda", 0) != 0) {
    throw usage_error("device '" + name + "' is not known", "", "one of: auto, cpu, cuda, cuda:N");
  }
  std::string problem = load_cuda_backend();
  if (!problem.empty()) {
    if (name != "auto") throw environment_error("cannot use " + name + ": " + problem, "", kHint);
    log_warn("using the CPU: " + problem);
    return at::Device(at::kCPU);
  }
  at::Device device(name == "auto" || name == "cuda" ? "cuda:0" : name);
  int64_t count = at::detail::getCUDAHooks().deviceCount();
  if (device.index() >= count) throw environment_error(cat(name, " does not exist: ", count, " GPUs here"), "", kHint);
  return device;
}

void wait_for(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

OwnStream::OwnStream(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl guard(device.type());
  guard.setDevice(device);  // Of this thread, whose first device is the first of all.
  // The same each time: the allocator keeps memory for each stream that was ever used, and has no use for it elsewhere.
  static std::map<c10::DeviceIndex, c10::Stream> streams;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto it = streams.find(device.index());
  if (it == streams.end()) it = streams.emplace(device.index(), guard.getStreamFromGlobalPool(device)).first;
  before_ = guard.exchangeStream(it->second);
}

OwnStream::~OwnStream() {
  if (before_) c10::impl::VirtualGuardImpl(before_->device_type()).exchangeStream(*before_);
}

at::ScalarType compute_dtype(ComputeType type) { return type == ComputeType::kFp32 ? at::kFloat : at::kBFloat16; }

}  // namespace tritonrl
