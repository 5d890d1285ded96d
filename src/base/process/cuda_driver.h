// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver of this machine: which CUDA it supports, and whether that is enough.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace tritonrl {

// As CUDA writes it: 13000 is 13.0. 0 = no driver, or one that does not say. The driver's library stays loaded.
int driver_cuda_version();

// Why what was built for CUDA `built` does not run on a driver for CUDA `driver`, with a hint; nothing where it does,
// or `driver` is 0. Within a major version every driver runs every program (CUDA's minor version compatibility).
std::optional<Error> driver_too_old(int driver, int built);

}  // namespace tritonrl
