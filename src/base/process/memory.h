// SPDX-License-Identifier: Apache-2.0
// How much memory this process holds.
#pragma once

#include <cstdint>

namespace tritonrl {

// Resident memory in bytes; 0 where the system does not say.
int64_t resident_bytes();

}  // namespace tritonrl
