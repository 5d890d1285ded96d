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
    : shape_(reference.sizes().vec()),
      dtype_(reference.scalar_type()),
      numel_(reference.numel()),
      precision_(precision) {
  CHECK(reference.sizes() == truth.sizes()) << "the two references of a task differ in shape";
  truth_ = flat(truth);
  at::Tensor r = flat(reference);
  if (!at::isFloatingType(dtype_)) {
    reference_ = r.clone();
    return;
  }
  tolerance_ = error_tolerance(from_torch(dtype_), precision);
  slack_ = at::zeros({(numel_ + kNoiseBlock - 1) / kNoiseBlock}, truth_.options().dtype(at::kFloat));
  ErrorMoments moments = error_moments(truth_, r);
  finite_ = moments.finite;
  auto count = static_cast<double>(std::max<int64_t>(finite_, 1));
  rms_truth_ = std::sqrt(moments.truth_squares / count);
  double rms_r = std::sqrt(moments.error_squares / count);
  noise_ = rms_truth_ > 0 ? rms_r / rms_truth_ : 0;
  allowed_rms_ = tolerance_.rms_floor * rms_truth_;
  if (finite_ < numel_) reference_ = r.clone();
  allow_for(r);
}

void Expectation::allow_for(const at::Tensor& other) {
  CHECK(other.numel() == numel_ && other.scalar_type() == dtype_) << "another answer of another form";
  if (!at::isFloatingType(dtype_) || tolerance_.fixed || numel_ == 0) return;
  at::Tensor x = flat(other);
  ErrorMoments moments = error_moments(truth_, x);
  double rms = std::sqrt(moments.error_squares / static_cast<double>(std::max<int64_t>(moments.finite, 1)));
  allowed_rms_ = std::max(allowed_rms_, std::min(kRmsFactor * rms, tolerance_.cap * rms_truth_));
  int64_t beyond = 0;
  in_chunks(numel_, [&](int64_t at, int64_t n) {  // Chunks are whole blocks.
    at::Tensor t = truth_.narrow(0, at, n), error = at::sub(x.narrow(0, at, n).to(at::kDouble), t).abs_();
    at::Tensor size = t.abs();
    error.masked_fill_(error.isfinite().logical_not_(), 0);
    size.masked_fill_(size.isfinite().logical_not_(), 0);
    auto blocks = [&](const at::Tensor& each) {
      int64_t missing = (kNoiseBlock - n % kNoiseBlock) % kNoiseBlock;
      at::Tensor whole = missing ? at::constant_pad_nd(each, {0, missing}) : each;
      return whole.view({-1, kNoiseBlock});
    };
    at::Tensor errors = blocks(error), most = errors.amax(1);
    at::Tensor bound = blocks(size).amax(1).add_(rms_truth_).mul_(tolerance_.cap);
    if (at::Tensor far = most.gt(bound); far.any().item<bool>()) {
      beyond += errors.index({far}).gt(bound.index({far}).unsqueeze(1)).sum().item<int64_t>();
      largest_error_ = std::max(largest_error_, most.max().item<double>());
    }
    at::Tensor allowed = at::minimum(most.mul_(kWorstFactor), bound);
    at::Tensor kept = slack_.narrow(0, at / kNoiseBlock, allowed.numel());
    kept.copy_(at::maximum(kept, allowed.to(at::kFloat)));
  });
  beyond_cap_ = std::max(beyond_cap_, beyond);
}

void Expectation::allow_within(double absolute) {
  if (!at::isFloatingType(dtype_) || tolerance_.fixed) return;
  tolerance_.quantum = std::max(tolerance_.quantum, absolute);
}

void Expectation::allow_without() {
  if (!at::isFloatingType(dtype_) || tolerance_.fixed) return;
  tolerance_ = undisturbed(tolerance_, from_torch(dtype_), precision_);
  allowed_rms_ = std::max(allowed_rms_, tolerance_.rms_floor * rms_truth_);
}

int64_t Expectation::strays() const {
  return std::min(kStrays * beyond_cap_, std::max<int64_t>(numel_ / kStrayShare, 1));
}

int64_t Expectation::bytes() const {
  int64_t sum = static_cast<int64_t>(truth_.nbytes());
  if (slack_.defined()) sum += static_cast<int64_t>(slack_.nbytes());
  return reference_.defined() ? sum + static_cast<int64_t>(reference_.nbytes()) : sum;
}

int64_t Expectation::unlike(const std::vector<double>& constants) const {
  at::Tensor other = at::ones_like(truth_, at::kBool);
  for (double one : constants) other.logical_and_(truth_.ne(one));
  return other.sum().item<int64_t>();
}

bool Judgement::strays() const {
  return not_finite_ == 0 && wrong_ <= expected_.strays() && largest_wrong_ <= kStrayError * expected_.largest_error_;
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
  BoundedError error = bounded_error(e.truth_.narrow(0, from, chunk.numel()), chunk, e.tolerance_.relative,
                                     e.always_allowed(), e.slack(from));
  if (!(error.worst < 1)) return false;
  sum_squares_ += error.squares;
  worst_ = std::max(worst_, error.worst);
  return true;
}

void Judgement::add_floats(int64_t from, const at::Tensor& chunk) {
  const Expectation& e = expected_;
  int64_t n = chunk.numel();
  at::Tensor t = e.truth_.narrow(0, from, n), c = chunk.to(at::kDouble);
  at::Tensor error = at::sub(c, t).abs_();
  at::Tensor bound = t.abs().mul_(e.tolerance_.relative).add_(e.always_allowed()).add_(e.slack(0).of(from, n));
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
    at::Tensor near = bound.ge(error);
    either.logical_or_(c.isfinite().logical_and_(t.isfinite()).logical_and_(near));
    wrong = at::where(finite, error.le(bound).logical_not_(), either.logical_not());
    not_finite = finite.logical_and(c.isfinite().logical_not_());
    error.masked_fill_(not_finite.logical_or(finite.logical_not()), 0);
  }
  at::Tensor sums =
      at::stack({error.dot(error), at::div(error, bound).nan_to_num_(0).max(), wrong.sum().to(at::kDouble),
                 not_finite.sum().to(at::kDouble), at::where(wrong, error, at::zeros_like(error)).max()})
          .cpu();
  sum_squares_ += sums[0].item<double>();
  worst_ = std::max(worst_, sums[1].item<double>());
  bool first_not_finite = sums[3].item<int64_t>() > 0;
  if (sums[2].item<int64_t>() > 0 && (wrong_ == 0 || (not_finite_ == 0 && first_not_finite))) {
    note_wrong(from, chunk, first_not_finite ? not_finite : wrong, first_not_finite);
  }
  wrong_ += sums[2].item<int64_t>();
  not_finite_ += sums[3].item<int64_t>();
  largest_wrong_ = std::max(largest_wrong_, sums[4].item<double>());
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
  result.worst = failed() ? worst_ : std::min(worst_, 1.0);
  if (failed()) {
    if (!floating) result.worst = INFINITY;
    double allowed = floating ? e.tolerance_.relative * std::abs(first_expected_) + e.always_allowed() +
                                    e.slack(0).of(first_, 1).item<double>()
                              : -1;
    result.finding =
        wrong_element(not_finite_ > 0 ? Rule::kNotFinite : Rule::kElements,
                      {name_, wrong_, e.numel_, index_of(first_, e.shape_), first_expected_, first_got_, allowed});
    return result;
  }
  if (!floating || e.tolerance_.fixed) return result;
  double rms = e.finite_ ? std::sqrt(sum_squares_ / static_cast<double>(e.finite_)) : 0;
  double bound = e.allowed_rms_ + e.tolerance_.quantum;
  result.worst = std::max(result.worst, rms / bound);
  if (rms > bound) result.finding = imprecise(name_, from_torch(e.dtype_), rms, bound);
  return result;
}

}  // namespace tritonrl
