// SPDX-License-Identifier: Apache-2.0
// Errors of many elements in one pass over memory: what comparing outputs of gigabytes spends its time on.
//
// `truth` is float64; `other` is of any floating dtype and of as many elements; both are flat and contiguous and on one
// device. On a GPU these are kernels of our own (replay/kernels.cu), which need no memory; elsewhere ATen's operators.
// Sums are taken in float64, in no fixed order. All wait for the result. Thread rule: one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

namespace tritonrl {

// Calls fn(first, count) for pieces of `numel` elements that ATen's operators look at together.
template <class Fn>
void in_chunks(int64_t numel, const Fn& fn) {
  constexpr int64_t kChunk = int64_t{1} << 25;
  for (int64_t at = 0; at < numel; at += kChunk) fn(at, std::min(kChunk, numel - at));
}

// Over the elements that are finite in both: sums of truth^2 and of (other - truth)^2, and their number.
struct ErrorMoments {
  double truth_squares = 0, error_squares = 0;
  int64_t finite = 0;
};
ErrorMoments error_moments(const at::Tensor& truth, const at::Tensor& other);

// What elements are allowed besides, one float32 a block of 2^shift of them; `first`: the place of the first one.
struct Slack {
  at::Tensor each;
  int shift = 0;
  int64_t first = 0;

  // Float64, for each of the elements [from, from + count), count > 0.
  at::Tensor of(int64_t from, int64_t count) const;
};

// Sum of (other - truth)^2, and the largest |other - truth| / (|truth| * relative + absolute + its slack): infinity as
// soon as one of them is no finite number (the sum then means nothing).
struct BoundedError {
  double squares = 0, worst = 0;
};
BoundedError bounded_error(const at::Tensor& truth, const at::Tensor& other, double relative, double absolute,
                           const Slack& slack);

}  // namespace tritonrl
