// SPDX-License-Identifier: Apache-2.0
// Memory that tensors take: how much it was at most, and what to lower when it ran out.
#pragma once

#include <ATen/ATen.h>

#include <exception>
#include <string>

#include "base/error.h"

namespace tritonrl {

// Most bytes of tensors that were allocated on `device` at once since this was asked last; 0 on the CPU.
int64_t device_peak_bytes(const at::Device& device);

// Throws Error (environment) that names `settings` to lower where `error` says that memory ran out while `what`.
void advise_on_memory(const std::exception& error, const std::string& what, const std::string& settings);

// fn(), where memory that ran out becomes such an Error.
template <class F>
auto with_memory_advice(const std::string& what, const std::string& settings, const F& fn) {
  try {
    return fn();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    advise_on_memory(error, what, settings);
    throw;
  }
}

}  // namespace tritonrl
