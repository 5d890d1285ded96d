// SPDX-License-Identifier: Apache-2.0
// Compare on the device: the rules of verify/execute/compare.h over tensors that stay where they are, chunk by chunk,
// so that a second copy of a candidate's outputs never has to fit.
//
//   Expectation expected(reference, truth);            once per case and seed
//   expected.allow_for(other);                         what another honest computation gives
//   Judgement judgement(expected, "output");           once per candidate
//   judgement.add(0, first_chunk); judgement.add(n, second_chunk);
//   Comparison result = judgement.finish();
//
// Works on any device. Thread rule: one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "verify/execute/compare.h"
#include "verify/judge/error_kernels.h"

namespace tritonrl {

// What one output tensor should be.
class Expectation {
 public:
  // `reference` in its own dtype; `truth` in float64, or as the reference is where that is no floating type.
  Expectation(const at::Tensor& reference, const at::Tensor& truth, Precision precision = Precision::kOwn);
  // An answer as good as the reference's, of its shape and dtype: errors like its own are allowed.
  void allow_for(const at::Tensor& other);
  // Whoever is this near to the truth is right: what vanishes may be zero.
  void allow_within(double absolute);
  // There is no such answer: what is allowed is what the dtype lets one expect.
  void allow_without();

  const std::vector<int64_t>& shape() const { return shape_; }
  at::ScalarType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  int64_t unlike(const std::vector<double>& constants) const;  // How many elements are none of these.
  bool is_zero() const { return at::isFloatingType(dtype_) && rms_truth_ == 0; }
  int64_t bytes() const;                   // That it keeps on the device.
  double noise() const { return noise_; }  // The reference's own error by the truth's size (root mean squares).
  int64_t strays() const;                  // Elements of a right answer that may be off by more than is allowed.

 private:
  friend class Judgement;
  std::vector<int64_t> shape_;
  at::ScalarType dtype_;
  int64_t numel_ = 0;
  at::Tensor truth_;      // Flat.
  at::Tensor reference_;  // Flat; floating types keep it only where some element is not finite.
  at::Tensor slack_;      // Float32, one number a block of kNoiseBlock elements: allowed for what others are off by.
  Precision precision_;
  ErrorTolerance tolerance_ = {};
  int64_t beyond_cap_ = 0;    // Elements of one honest answer, at most, that are off by more than the cap,
  double largest_error_ = 0;  // ... and the largest error among them.
  double rms_truth_ = 0, noise_ = 0, allowed_rms_ = 0;
  int64_t finite_ = 0;

  double always_allowed() const { return tolerance_.of_rms * rms_truth_ + tolerance_.absolute + tolerance_.quantum; }
  Slack slack(int64_t from) const { return {slack_, kNoiseShift, from}; }
};

class Judgement {
 public:
  Judgement(const Expectation& expected, std::string name) : expected_(expected), name_(std::move(name)) {}

  // Elements [from, from + elements.numel()) in row-major order; `elements` is flat and of the expected dtype.
  void add(int64_t from, const at::Tensor& elements);
  bool failed() const { return wrong_ > 0 && !strays(); }  // So far.
  int64_t wrong() const { return wrong_; }                 // So far, strays too.
  Comparison finish() const;

 private:
  bool strays() const;  // Is what is wrong no more than honest answers have?
  bool all_right(int64_t from, const at::Tensor& chunk);
  void add_floats(int64_t from, const at::Tensor& chunk);
  void add_exact(int64_t from, const at::Tensor& chunk);
  void note_wrong(int64_t from, const at::Tensor& chunk, const at::Tensor& wrong, bool not_finite);

  const Expectation& expected_;
  std::string name_;
  double worst_ = 0, sum_squares_ = 0, largest_wrong_ = 0;
  int64_t wrong_ = 0, not_finite_ = 0, first_ = -1;
  double first_expected_ = 0, first_got_ = 0;
};

}  // namespace tritonrl
