// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/compare_device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "verify/judge/error_kernels.h"
#include "verify/replay/tape.h"

namespace tritonrl {
namespace {

// A vector with a stride is flat already, but not contiguous.
at::Tensor flat(const at::Tensor& tensor) { return tensor.reshape({-1}).contiguous(); }

}  // namespace

Expectation::Expectation(const at::Tensor& reference, const at::Tensor& truth, Precision precision)
    : shape_(reference.sizes().vec()), dtype_(reference.scalar_type()), numel_(reference.numel()) {
  CHECK(reference.sizes() == truth.sizes()) << "the two references of a task differ in shape";
  truth_ = flat(truth);
  at::Tensor r = flat(reference);
  if (!at::isFloatingType(dtype_)) {
    reference_ = r.clone();
    return;
  }
  ErrorTolerance tolerance = error_tolerance(from_torch(dtype_), precision);
  quantum_ = tolerance.quantum;
  ErrorMoments moments = error_moments(truth_, r);
  finite_ = moments.finite;
  auto count = static_cast<double>(std::max<int64_t>(finite_, 1));
  rms_truth_ = std::sqrt(moments.truth_squares / count);
  double rms_r = std::sqrt(moments.error_squares / count);
  noise_ = rms_truth_ > 0 ? rms_r / rms_truth_ : 0;
  double worst = worst_relative_error(truth_, r, rms_truth_);
  allowed_ = std::min(std::max(kWorstFactor * worst, tolerance.floor), tolerance.cap);
  allowed_rms_ = std::min(std::max(kRmsFactor * noise_, tolerance.rms_floor), tolerance.cap);
  if (finite_ < numel_) reference_ = r.clone();
}

int64_t Expectation::bytes() const {
  int64_t sum = static_cast<int64_t>(truth_.nbytes());
  return reference_.defined() ? sum + static_cast<int64_t>(reference_.nbytes()) : sum;
}

int64_t Expectation::unlike(const std::vector<double>& constants) const {
  at::Tensor other = at::ones_like(truth_, at::kBool);
  for (double one : constants) other.logical_and_(truth_.ne(one));
  return other.sum().item<int64_t>();
}

void Judgement::add(int64_t from, const at::Tensor& elements) {
  CHECK(elements.scalar_type() == expected_.dtype_ && from + elements.numel() <= expected_.numel_);
  at::Tensor chunk = elements.contiguous();
  bool floating = at::isFloatingType(expected_.dtype_);
  if (floating && all_right(from, chunk)) return;
  in_chunks(chunk.numel(), [&](int64_t at, int64_t n) {
    at::Tensor part = chunk.narrow(0, at, n);
    floating ? add_floats(from + at, part) : add_exact(from + at, part);
  });
}

// One pass over memory, for chunks in which nothing is wrong; else false, and nothing has happened.
bool Judgement::all_right(int64_t from, const at::Tensor& chunk) {
  const Expectation& e = expected_;
  if (e.reference_.defined()) return false;
  BoundedError error =
      bounded_error(e.truth_.narrow(0, from, chunk.numel()), chunk, e.allowed_, e.allowed_ * e.rms_truth_ + e.quantum_);
  if (!(error.worst < 1)) return false;
  sum_squares_ += error.squares;
  worst_ = std::max(worst_, error.worst);
  return true;
}

void Judgement::add_floats(int64_t from, const at::Tensor& chunk) {
  const Expectation& e = expected_;
  int64_t n = chunk.numel();
  at::Tensor t = e.truth_.narrow(0, from, n), c = chunk.to(at::kDouble);
  at::Tensor error = at::sub(c, t).abs_(), bound = t.abs().add_(e.rms_truth_).mul_(e.allowed_).add_(e.quantum_);
  at::Tensor wrong, not_finite;
  if (!e.reference_.defined()) {  // Everything should be finite: a NaN fails `<=`, an infinity too.
    wrong = error.le(bound).logical_not_();
    not_finite = c.isfinite().logical_not_();
    error.masked_fill_(not_finite, 0);
  } else {
    at::Tensor r = e.reference_.narrow(0, from, n).to(at::kDouble);
    at::Tensor finite = r.isfinite().logical_and_(t.isfinite());
    at::Tensor either = c.isnan().logical_and_(r.isnan().logical_or_(t.isnan()));
    either.logical_or_(c.eq(r)).logical_or_(c.eq(t));
    at::Tensor near = t.abs().add_(e.rms_truth_).mul_(e.allowed_).ge_(error).to(at::kBool);
    either.logical_or_(c.isfinite().logical_and_(t.isfinite()).logical_and_(near));
    wrong = at::where(finite, error.le(bound).logical_not_(), either.logical_not());
    not_finite = finite.logical_and(c.isfinite().logical_not_());
    error.masked_fill_(not_finite.logical_or(finite.logical_not()), 0);
  }
  at::Tensor sums = at::stack({error.dot(error), at::div(error, bound).nan_to_num_(0).max(),
                               wrong.sum().to(at::kDouble), not_finite.sum().to(at::kDouble)})
                        .cpu();
  sum_squares_ += sums[0].item<double>();
  worst_ = std::max(worst_, sums[1].item<double>());
  bool first_not_finite = sums[3].item<int64_t>() > 0;
  if (sums[2].item<int64_t>() > 0 && (wrong_ == 0 || (not_finite_ == 0 && first_not_finite))) {
    note_wrong(from, chunk, first_not_finite ? not_finite : wrong, first_not_finite);
  }
  wrong_ += sums[2].item<int64_t>();
  not_finite_ += sums[3].item<int64_t>();
}

void Judgement::add_exact(int64_t from, const at::Tensor& chunk) {
  int64_t n = chunk.numel();
  at::Tensor wrong = chunk.ne(expected_.reference_.narrow(0, from, n));
  if (expected_.truth_.scalar_type() == expected_.dtype_) {
    wrong.logical_and_(chunk.ne(expected_.truth_.narrow(0, from, n)));
  }
  auto count = wrong.sum().item<int64_t>();
  if (count > 0 && wrong_ == 0) note_wrong(from, chunk, wrong, false);
  wrong_ += count;
}

void Judgement::note_wrong(int64_t from, const at::Tensor& chunk, const at::Tensor& wrong, bool) {
  auto index = wrong.to(at::kByte).argmax().item<int64_t>();
  first_ = from + index;
  const at::Tensor& shown = at::isFloatingType(expected_.dtype_) ? expected_.truth_ : expected_.reference_;
  first_expected_ = shown[first_].to(at::kDouble).item<double>();
  first_got_ = chunk[index].to(at::kDouble).item<double>();
}

Comparison Judgement::finish() const {
  Comparison result;
  const Expectation& e = expected_;
  bool floating = at::isFloatingType(e.dtype_);
  result.worst = worst_;
  if (wrong_ > 0) {
    if (!floating) result.worst = INFINITY;
    double allowed = floating ? e.allowed_ * (std::abs(first_expected_) + e.rms_truth_) + e.quantum_ : -1;
    result.finding =
        wrong_element(not_finite_ > 0 ? Rule::kNotFinite : Rule::kElements,
                      {name_, wrong_, e.numel_, index_of(first_, e.shape_), first_expected_, first_got_, allowed});
    return result;
  }
  if (!floating) return result;
  double rms = e.finite_ ? std::sqrt(sum_squares_ / static_cast<double>(e.finite_)) : 0;
  double bound = e.allowed_rms_ * e.rms_truth_ + e.quantum_;
  result.worst = std::max(result.worst, rms / bound);
  if (rms > bound) result.finding = imprecise(name_, from_torch(e.dtype_), rms, bound);
  return result;
}

}  // namespace tritonrl
