// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/staging.h"

#include <ATen/ops/from_blob.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int kInherited = 4;

void check_cuda(cudaError_t result, const char* what) {
  if (result != cudaSuccess) {
    throw environment_error(cat(what, ": ", cudaGetErrorString(result)), "",
                            "judge and replayer need CUDA IPC; containers must share the host's IPC namespace");
  }
}

}  // namespace

std::unique_ptr<Staging> Staging::create(at::Device device) {
  std::unique_ptr<Staging> staging(new Staging(device));
  if (device.is_cuda()) {
    check_cuda(cudaMalloc(&staging->memory_, kBytes), "allocating shared GPU memory");
    cudaIpcMemHandle_t handle;
    check_cuda(cudaIpcGetMemHandle(&handle, staging->memory_), "sharing GPU memory");
    for (unsigned char byte : handle.reserved) {
      char text[3];
      std::snprintf(text, sizeof text, "%02x", byte);
      staging->handle_ += text;
    }
    return staging;
  }
  int fd = ::memfd_create("tritonrl-staging", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, kBytes) != 0) throw environment_error("cannot make shared memory");
  staging->fd_ = fd;
  staging->memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(staging->memory_ != MAP_FAILED);
  return staging;
}

std::unique_ptr<Staging> Staging::open(at::Device device, const std::string& handle) {
  std::unique_ptr<Staging> staging(new Staging(device));
  staging->opened_ = true;
  if (device.is_cuda()) {
    cudaIpcMemHandle_t raw;
    CHECK(handle.size() == 2 * sizeof raw.reserved) << "a malformed handle";
    for (size_t i = 0; i < sizeof raw.reserved; ++i) {
      raw.reserved[i] = static_cast<char>(std::stoi(handle.substr(2 * i, 2), nullptr, 16));
    }
    check_cuda(cudaIpcOpenMemHandle(&staging->memory_, raw, cudaIpcMemLazyEnablePeerAccess), "opening shared memory");
    return staging;
  }
  staging->memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kInherited, 0);
  if (staging->memory_ == MAP_FAILED) throw environment_error("cannot map the judge's shared memory");
  ::close(kInherited);
  return staging;
}

Staging::~Staging() {
  if (!device_.is_cuda()) {
    if (memory_) ::munmap(memory_, kBytes);
    if (fd_ >= 0) ::close(fd_);
  } else if (opened_) {
    cudaIpcCloseMemHandle(memory_);
  } else {
    cudaFree(memory_);
  }
}

at::Tensor Staging::bytes(int64_t at, int64_t bytes) const {
  CHECK(at >= 0 && bytes >= 0 && at + bytes <= kBytes) << "beyond the shared memory";
  return at::from_blob(static_cast<char*>(memory_) + at, {bytes}, at::TensorOptions(device_).dtype(at::kByte));
}

at::Tensor bytes_of(const at::Tensor& tensor, int64_t at, int64_t bytes) {
  CHECK(tensor.is_contiguous() && at >= 0 && bytes >= 0 && at + bytes <= static_cast<int64_t>(tensor.nbytes()));
  return at::from_blob(static_cast<char*>(tensor.data_ptr()) + at, {bytes}, tensor.options().dtype(at::kByte));
}

}  // namespace tritonrl
