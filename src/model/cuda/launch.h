// SPDX-License-Identifier: Apache-2.0
// How a tensor operation starts one of our CUDA kernels.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/error.h"
#include "base/text.h"
#include "model/cuda/kernels.h"

namespace tritonrl::cuda {

// One of our kernels on the device and stream of a tensor.
class Launch {
 public:
  explicit Launch(const at::Tensor& x)
      : guard_(x.device()),
        stream_(c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device()).native_handle()) {}
  // fn(stream, arguments ...).
  template <class Fn, class... A>
  void operator()(const Fn& fn, A... arguments) const {
    int error = fn(stream_, arguments...);
    if (error != 0) throw environment_error(cat("a CUDA kernel did not start: ", kernels()->error_name(error)));
  }

 private:
  c10::DeviceGuard guard_;
  void* stream_;
};

}  // namespace tritonrl::cuda
