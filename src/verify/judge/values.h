// SPDX-License-Identifier: Apache-2.0
// Value transforms: what a case makes of the inputs that get_inputs() drew.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace tritonrl {

// `input` under kValueTransforms' `name` (verify/execute/case_source.h), in the same layout. Where numbers are drawn
// anew, booleans are too, and integers change places; else they stay, as do tensors whose elements overlap. What is
// symmetric stays so, and so do exact zeros where there are many (a triangular matrix, a mask). Random numbers come
// from the device's generator, as draw_inputs() left it.
at::Tensor transformed(const std::string& name, const at::Tensor& input);

}  // namespace tritonrl
