// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/values.h"

#include "base/check.h"

namespace tritonrl {
namespace {

constexpr int64_t kZerosThatMeanSomething = 8;  // One in so many.

// +1, -1, +1, ... along the last dimension.
at::Tensor signs_like(const at::Tensor& x) {
  if (x.dim() == 0) return at::ones_like(x);
  return at::arange(x.size(-1), x.options()).remainder(2).mul(-2).add(1);
}

// 1, 1/2, 1/4, ... 2^-23, and again, along the rows (the first of several dimensions); along elements of a vector.
at::Tensor ladder_like(const at::Tensor& x) {
  if (x.dim() == 0) return at::ones_like(x);
  at::Tensor steps = at::arange(x.size(0), x.options()).remainder(24).neg().exp2();
  std::vector<int64_t> shape(x.dim(), 1);
  shape[0] = x.size(0);
  return steps.view(shape);
}

bool is_symmetric(const at::Tensor& x) {
  return x.dim() >= 2 && x.size(-1) > 1 && x.size(-1) == x.size(-2) && at::equal(x, x.mT());
}

// A triangular matrix has more zeros than chance gives.
bool has_zeros(const at::Tensor& x) {
  return x.numel() > 1 && x.eq(0).sum().item<int64_t>() >= x.numel() / kZerosThatMeanSomething;
}

at::Tensor row_numbers(const at::Tensor& x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[0] = x.size(0);
  return at::arange(x.size(0), x.options().dtype(at::kLong)).view(shape);
}

}  // namespace

at::Tensor transformed(const std::string& name, const at::Tensor& input) {
  if (input.numel() == 0 || !input.is_non_overlapping_and_dense()) return input;
  bool drawn = name == "uniform" || name == "large" || name == "heavy_tail";
  auto like = [&](const at::Tensor& y) {
    return at::empty_strided(input.sizes(), input.strides(), input.options()).copy_(y);
  };
  if (!at::isFloatingType(input.scalar_type())) {
    if (!drawn) return input;
    auto numbers = input.options().dtype(at::kFloat);
    // Three of four: few rows of a mask are empty then, where nobody knows what is right.
    if (input.scalar_type() == at::kBool) return like(at::rand(input.sizes(), numbers).lt(0.75));
    return like(
        input.flatten().index({at::randperm(input.numel(), input.options().dtype(at::kLong))}).view(input.sizes()));
  }
  auto wide = input.options().dtype(at::kFloat);
  auto normal = [&] { return at::randn(input.sizes(), wide); };
  auto uniform = [&] { return at::rand(input.sizes(), wide); };
  at::Tensor x = input.to(at::kFloat), y;
  if (name == "doubled") {
    y = input.mul(2);
  } else if (name == "negated") {
    y = input.neg();
  } else if (name == "small") {
    y = x.div(128);
  } else if (name == "magnitudes") {
    y = x.mul(ladder_like(x));
  } else if (name == "uniform") {
    y = uniform().mul_(2).sub_(1);
  } else if (name == "large") {
    y = normal().mul_(100);
    if (x.dim() > 1) {  // Rows of both signs, of negative numbers alone, of positive ones alone.
      at::Tensor kind = row_numbers(x).remainder(3), far = y.abs().add(100);
      y = at::where(kind.eq(1), far.neg(), at::where(kind.eq(2), far, y));
    }
  } else if (name == "heavy_tail") {
    y = normal().div_(uniform().clamp_min_(1e-6).log_().neg_().clamp_min_(1e-6).sqrt_()).clamp_(-1e4, 1e4);
  } else if (name == "sparse") {
    y = x.mul(uniform().lt(0.1));
  } else if (name == "integers") {
    y = uniform().mul_(17).floor_().sub_(8);
  } else if (name == "cancelling") {
    y = normal().add_(signs_like(x).mul(1000));
  } else if (name == "equal_rows") {
    y = x.dim() < 2 ? x : x.narrow(0, 0, 1).expand_as(x);
  } else {
    CHECK(false) << "no transform " << name;
  }
  if (is_symmetric(x)) y = y.triu().add_(y.triu(1).mT());
  if (has_zeros(x)) y = at::where(x.eq(0), x, y);
  return like(y);
}

}  // namespace tritonrl
