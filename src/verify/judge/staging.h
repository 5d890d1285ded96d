// SPDX-License-Identifier: Apache-2.0
// Staging: the one piece of memory that judge and replayer share. Inputs and outputs of candidates cross it in chunks;
// nothing else ever lies in it, and the answer never does. CUDA IPC memory, or a memfd where the device is the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace tritonrl {

class Staging {
 public:
  static constexpr int64_t kBytes = int64_t{256} << 20;

  // The judge's side.
  static std::unique_ptr<Staging> create(at::Device device);
  // The replayer's side. `handle`: what handle() said; the memfd is descriptor 4. Throws Error (environment).
  static std::unique_ptr<Staging> open(at::Device device, const std::string& handle);
  ~Staging();

  std::string handle() const { return handle_; }
  int inherit() const { return fd_; }  // Descriptor the replayer must inherit; -1 = none.

  // The memory at [at, at + bytes) as a byte tensor.
  at::Tensor bytes(int64_t at, int64_t bytes) const;

 private:
  Staging(at::Device device) : device_(device) {}
  at::Device device_;
  void* memory_ = nullptr;
  bool opened_ = false;
  std::string handle_;
  int fd_ = -1;
};

// The bytes of a contiguous tensor, from byte `at` on.
at::Tensor bytes_of(const at::Tensor& tensor, int64_t at, int64_t bytes);

}  // namespace tritonrl
