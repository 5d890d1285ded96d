// SPDX-License-Identifier: Apache-2.0
// Products of linear maps on the CPU against double precision: part panels, odd depths, chunks of depth, rows left
// over.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "model/ops.h"

namespace tritonrl::linear_test {
namespace {

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  auto out = at::empty(shape, at::kFloat);
  Rng rng(seed);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = static_cast<float>(2 * rng.uniform() - 1);
  return out;
}

TEST(Linear, IsTheProductAndKnowsNoOtherRows) {
  struct Size {
    int64_t n, k;
  };
  for (Size s : {Size{64, 64}, Size{1, 1}, Size{63, 2}, Size{65, 63}, Size{130, 65}, Size{64, 127}, Size{70, 129},
                 Size{200, 576}, Size{16, 1025}}) {
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
      at::Tensor weight = random({s.n, s.k}, 1).to(dtype), x = random({13, s.k}, 2).to(dtype);
      at::Tensor dy = random({13, s.n}, 3).to(dtype);
      Linear w = make_linear(weight, {}, false, true);
      auto where = testing::Message() << s.n << "x" << s.k << " " << dtype;
      at::Tensor exact = at::mm(x.to(at::kDouble), weight.to(at::kDouble).t());
      at::Tensor scale = at::mm(x.to(at::kDouble).abs(), weight.to(at::kDouble).abs().t());
      at::Tensor out = linear_float(w, x);
      EXPECT_LT(((out.to(at::kDouble) - exact).abs() / (scale + 1e-30)).max().item<double>(), 1e-5) << where;
      at::Tensor back = linear_transposed(w, dy).to(at::kDouble);
      at::Tensor exact_back = at::mm(dy.to(at::kDouble), weight.to(at::kDouble));
      at::Tensor scale_back = at::mm(dy.to(at::kDouble).abs(), weight.to(at::kDouble).abs());
      double rounding = dtype == at::kFloat ? 1e-5 : 5e-3;
      EXPECT_LT(((back - exact_back).abs() / (scale_back + 1e-30)).max().item<double>(), rounding) << where;
      for (int64_t rows = 1; rows <= 13; ++rows) {
        EXPECT_TRUE(at::equal(linear_float(w, x.slice(0, 0, rows)), out.slice(0, 0, rows))) << where << rows << " rows";
      }
    }
  }
}

TEST(Linear, GivesATensProductsTheTypeTheyAreFastIn) {
  at::Tensor x = random({3, 5}, 1);
  EXPECT_TRUE(for_product(x).is_same(x));
  at::Tensor half = x.to(at::kBFloat16), given = for_product(half);
  EXPECT_TRUE(given.is_same(half) || given.scalar_type() == at::kFloat);
  EXPECT_TRUE(at::equal(given.to(at::kDouble), half.to(at::kDouble)));
}

}  // namespace
}  // namespace tritonrl::linear_test
