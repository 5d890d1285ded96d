// SPDX-License-Identifier: Apache-2.0
// Matrices of 8-bit integers with float scales: W = q s, symmetric, s = max |w| / 127 of an output's row or of a group
// of its inputs. No weight moves by more than s / 2.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace tritonrl {

struct Int8Matrix {
  at::Tensor q_NK;      // int8, in [-127, 127].
  at::Tensor scale_GN;  // Float: of G = K / group groups of inputs of each output. G = 1: one scale a row.
};

// A group must be 0 (a whole row) or a multiple of 8 that divides the inputs. Throws Error (usage) naming the matrix.
void check_int8_group(int64_t group, int64_t inputs, const std::string& name);

// Of a floating-point matrix on any device; works in float on some rows at a time.
// Throws Error (usage) for a group that does not fit, and for weights that are not finite; `name` is for the message.
Int8Matrix quantize_int8(const at::Tensor& weight_NK, int64_t group, const std::string& name = "the matrix");

// q s -> NK, multiplied in float and rounded once to dtype.
at::Tensor dequantize(const Int8Matrix& matrix, at::ScalarType dtype);

}  // namespace tritonrl
