// SPDX-License-Identifier: Apache-2.0
#include "model/device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/process/cuda_driver.h"
#include "base/text.h"

namespace tritonrl {

bool has_cuda_driver() { return std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/dev/dxg"); }

namespace {

constexpr char kHint[] = "see `tritonrl doctor`; --set policy.device=auto takes the processor where there is no GPU";

}  // namespace

std::optional<Error> load_cuda_backend() {
  static const std::optional<Error> problem = []() -> std::optional<Error> {
    if (!has_cuda_driver()) return environment_error("no NVIDIA driver on this machine", "", kHint);
    for (const char* library : {"libc10_cuda.so", "libtorch_cuda.so"}) {
      if (::dlopen(library, RTLD_NOW | RTLD_GLOBAL)) continue;
      return environment_error(cat("cannot load ", library, ": ", ::dlerror()), "", kHint);
    }
    auto built = static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
    if (auto old = driver_too_old(driver_cuda_version(), built)) return old;
    if (!at::globalContext().hasCUDA()) return environment_error("LibTorch sees no GPU", "", kHint);
    return std::nullopt;
  }();
  return problem;
}

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto" && !has_cuda_driver()) return at::Device(at::kCPU);
  if (name != "auto" && name.rfind("cuda", 0) != 0) {
    throw usage_error("device '" + name + "' is not known", "", "one of: auto, cpu, cuda, cuda:N");
  }
  if (auto problem = load_cuda_backend()) {
    if (name != "auto")
      throw environment_error(cat("cannot use ", name, ": ", problem->message()), "", problem->hint());
    log_warn(cat("using the CPU: ", problem->message()));
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

void give_back_memory(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(device.type());
  if (allocator->initialized()) allocator->emptyCache();
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
