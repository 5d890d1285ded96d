// SPDX-License-Identifier: Apache-2.0
// The judge: what it must accept (honest rounding) and what it must reject (everything planted here).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "verify/execute/case_run.h"
#include "verify/execute/judge_slots.h"
#include "verify/judge/compare_device.h"
#include "verify/judge/values.h"

namespace tritonrl::compare_test {
namespace {

at::Tensor floats(const std::vector<float>& v) { return at::tensor(v); }
at::Tensor doubles(const std::vector<double>& v) { return at::tensor(v, at::kDouble); }
at::Tensor bits(const std::vector<int16_t>& v, at::ScalarType dtype) { return at::tensor(v, at::kShort).view(dtype); }

// Judged whole and in pieces, and on a GPU too where there is one: it is all the same.
Comparison compare(const at::Tensor& candidate, const at::Tensor& reference, const at::Tensor& truth,
                   Precision precision = Precision::kOwn) {
  std::optional<Comparison> first;
  std::vector<at::Device> devices = {at::kCPU};
  if (!JudgeSlots::devices().empty()) devices.emplace_back("cuda:0");
  for (at::Device device : devices) {
    Expectation expected(reference.to(device), truth.to(device), precision);
    at::Tensor flat = candidate.to(device).reshape({-1});
    for (int64_t piece : {flat.numel(), int64_t{7}}) {
      Judgement judgement(expected, "output");
      for (int64_t at = 0; at < flat.numel(); at += piece) {
        judgement.add(at, flat.narrow(0, at, std::min(piece, flat.numel() - at)));
      }
      Comparison one = judgement.finish();
      if (!first) first = one;
      EXPECT_EQ(human_text(one.finding), human_text(first->finding));
      if (std::isfinite(first->worst)) {
        EXPECT_NEAR(one.worst, first->worst, 1e-9 * first->worst + 1e-12);
      }
    }
  }
  return *first;
}

std::vector<double> normals(int n, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(rng.normal());
  return out;
}
std::vector<float> rounded(const std::vector<double>& v) { return {v.begin(), v.end()}; }

Comparison judge(const std::vector<float>& candidate, const std::vector<double>& truth,
                 Precision precision = Precision::kOwn) {
  return compare(floats(candidate), floats(rounded(truth)), doubles(truth), precision);
}

TEST(Compare, AcceptsHonestRounding) {
  auto truth = normals(10000);
  auto candidate = rounded(truth);
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kPass);
  for (size_t i = 0; i < candidate.size(); ++i) candidate[i] *= 1 + (i % 2 ? 4e-6f : -4e-6f);
  Comparison close = judge(candidate, truth);
  EXPECT_EQ(close.finding.outcome(), Outcome::kPass) << human_text(close.finding);
  EXPECT_GT(close.worst, 0);
}

TEST(Compare, RejectsOneWrongElement) {
  auto truth = normals(10000);
  auto candidate = rounded(truth);
  candidate[1234] += 0.01f;
  Comparison result = judge(candidate, truth);
  EXPECT_EQ(result.finding.outcome(), Outcome::kWrongOutput);
  EXPECT_NE(human_text(result.finding).find("1 of 10000"), std::string::npos) << human_text(result.finding);
  EXPECT_NE(human_text(result.finding).find("(1234,)"), std::string::npos) << human_text(result.finding);
}

TEST(Compare, RejectsHalfPrecisionWorkOnFullPrecisionTasks) {
  auto truth = normals(1000);
  auto candidate = rounded(truth);
  for (float& x : candidate) {
    int exponent;
    float mantissa = std::frexp(x, &exponent);
    x = std::ldexp(std::round(mantissa * 2048) / 2048, exponent);  // float16's 11 bits.
  }
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kWrongOutput);
  EXPECT_EQ(judge(candidate, truth, Precision::kOtherProducts).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(judge(candidate, truth, Precision::kOther).finding.outcome(), Outcome::kWrongOutput);
  candidate[500] += 0.1f;
  EXPECT_EQ(judge(candidate, truth, Precision::kOtherProducts).finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, OnlyProductsInAnotherPrecisionAreHeldToHalfPrecisionsTolerance) {
  CaseSpec own, other;
  other.other_precision = true;
  for (Tolerance tolerance : {Tolerance::kFp32, Tolerance::kTf32}) {
    EXPECT_EQ(precision_of(other, tolerance, Products::kRounded), Precision::kOtherProducts);
    EXPECT_EQ(precision_of(other, tolerance, Products::kTf32), Precision::kOtherProducts);
    EXPECT_EQ(precision_of(other, tolerance, Products::kNone), Precision::kOther);
    EXPECT_EQ(precision_of(own, tolerance, Products::kRounded), Precision::kOwn);
    EXPECT_EQ(precision_of(own, tolerance, Products::kNone), Precision::kOwn);
  }
  EXPECT_EQ(precision_of(own, Tolerance::kFp32, Products::kTf32), Precision::kOwn);
  EXPECT_EQ(precision_of(own, Tolerance::kTf32, Products::kTf32), Precision::kProducts);
  EXPECT_EQ(precision_of(own, Tolerance::kKernelBench, Products::kNone), Precision::kKernelBench);
}

TEST(Compare, AnElementCountsByItsOwnSize) {
  auto truth = normals(1000);
  for (size_t i = 0; i < truth.size(); ++i) truth[i] *= i / 16 % 2 ? 1 : 1e-7;  // By the block.
  auto candidate = rounded(truth);
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kPass);
  candidate[517] = 0;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kWrongOutput);
  EXPECT_EQ(judge(candidate, truth, Precision::kKernelBench).finding.outcome(), Outcome::kPass);
}

TEST(Compare, WhatOtherHonestAnswersAreOffByIsAllowedInTheirBlock) {
  std::vector<double> truth(1000, 1e-6);  // Differences of numbers near one, say.
  auto reference = rounded(truth), other = reference;
  other[40] += 3e-9f;
  Expectation expected(floats(reference), doubles(truth));
  auto verdict = [&](size_t place, float error) {
    auto candidate = reference;
    candidate[place] += error;
    Judgement judgement(expected, "output");
    judgement.add(0, floats(candidate));
    return judgement.finish().finding.outcome();
  };
  EXPECT_EQ(verdict(35, 3e-9f), Outcome::kWrongOutput);
  expected.allow_for(floats(other));
  EXPECT_EQ(verdict(35, 3e-9f), Outcome::kPass);
  EXPECT_EQ(verdict(50, 3e-9f), Outcome::kWrongOutput) << "another block";
  expected.allow_without();
  EXPECT_EQ(verdict(50, 1e-10f), Outcome::kPass);
}

TEST(Compare, WhatVanishesMayBeZeroWhereItIsSaid) {
  const std::vector<double> truth = {-1e-20}, more = {-1e-14};
  auto zero = [](const std::vector<double>& truth, double within) {
    Expectation expected(floats(rounded(truth)), doubles(truth));
    expected.allow_within(within);
    Judgement judgement(expected, "output");
    judgement.add(0, floats({0}));
    return judgement.finish().finding.outcome();
  };
  EXPECT_EQ(zero(truth, 0), Outcome::kWrongOutput);
  EXPECT_EQ(zero(truth, 1e-15), Outcome::kPass);
  EXPECT_EQ(zero(more, 1e-15), Outcome::kWrongOutput);
}

TEST(Compare, KernelBenchsToleranceIsTheirs) {
  std::vector<double> truth(100, 2.0);
  EXPECT_EQ(judge(std::vector<float>(100, 2.00029f), truth, Precision::kKernelBench).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(judge(std::vector<float>(100, 2.00031f), truth, Precision::kKernelBench).finding.outcome(),
            Outcome::kWrongOutput);
}

TEST(Compare, RejectsManySmallErrorsBelowTheWorstElementBound) {
  auto truth = normals(10000);
  auto candidate = rounded(truth);
  for (float& x : candidate) x *= 1 + 8e-6f;  // Each within 1e-5 of itself, together too many.
  Comparison result = judge(candidate, truth);
  EXPECT_EQ(result.finding.outcome(), Outcome::kWrongOutput);
  EXPECT_NE(human_text(result.finding).find("imprecise"), std::string::npos) << human_text(result.finding);
}

TEST(Compare, AllowsAMultipleOfTheReferencesOwnErrorUpToTheCap) {
  std::vector<double> truth(100, 1.0);
  std::vector<float> reference(100, 1.001f), candidate(100, 0.998f);
  EXPECT_EQ(compare(floats(candidate), floats(reference), doubles(truth)).finding.outcome(), Outcome::kPass);
  std::vector<float> poor(100, 2.0f), poorer(100, 1.5f);
  EXPECT_EQ(compare(floats(poorer), floats(poor), doubles(truth)).finding.outcome(), Outcome::kWrongOutput);  // Capped.
}

// A gate behind a product in TF32: elements near to its threshold land on either side.
TEST(Compare, WhereHonestAnswersStraySoMayAFewElements) {
  const auto truth = normals(100000);
  const auto reference = rounded(truth);
  auto strayed = [&](size_t first, size_t count, float error) {
    auto answer = reference;
    for (size_t i = 0; i < count; ++i) answer[first + 64 * i] += error;
    return answer;
  };
  auto verdict = [&](const std::vector<float>& candidate, bool honest_strays) {
    Expectation expected(floats(reference), doubles(truth));
    expected.allow_for(floats(honest_strays ? strayed(16, 10, 0.2f) : reference));
    Judgement judgement(expected, "output");
    judgement.add(0, floats(candidate));
    EXPECT_EQ(judgement.failed(), !judgement.finish().passed());
    return judgement.finish().finding.outcome();
  };
  EXPECT_EQ(verdict(strayed(32, 5, 0.25f), false), Outcome::kWrongOutput);
  EXPECT_EQ(verdict(strayed(32, 5, 0.25f), true), Outcome::kPass);
  EXPECT_EQ(verdict(strayed(32, 80, 0.25f), true), Outcome::kPass);
  EXPECT_EQ(verdict(strayed(32, 81, 0.25f), true), Outcome::kWrongOutput) << "eight times as many";
  EXPECT_EQ(verdict(strayed(32, 1, 0.5f), true), Outcome::kWrongOutput) << "too far away";
  EXPECT_EQ(verdict(strayed(32, 1, NAN), true), Outcome::kNotFinite);
}

TEST(Compare, WhatCouldNotBeDisturbedIsHeldToTheBitsOfItsProducts) {
  const auto truth = normals(1000);
  auto verdict = [&](Precision precision, float error) {
    auto candidate = rounded(truth);
    candidate[500] += error;
    Expectation expected(floats(rounded(truth)), doubles(truth), precision);
    expected.allow_without();
    Judgement judgement(expected, "output");
    judgement.add(0, floats(candidate));
    return judgement.finish().finding.outcome();
  };
  EXPECT_EQ(verdict(Precision::kOwn, 2e-3f), Outcome::kWrongOutput);
  EXPECT_EQ(verdict(Precision::kProducts, 2e-3f), Outcome::kPass);
  EXPECT_EQ(verdict(Precision::kProducts, 5e-2f), Outcome::kWrongOutput);
}

TEST(Values, WhatIsSymmetricOrTriangularStaysSo) {
  at::Tensor any = at::randn({9, 9}), symmetric = any + any.t(), lower = any.tril();
  for (const char* name : {"uniform", "large", "heavy_tail", "magnitudes", "small"}) {
    at::Tensor y = transformed(name, symmetric);
    EXPECT_TRUE(at::equal(y, y.t())) << name;
    EXPECT_FALSE(at::equal(y, symmetric)) << name;
    EXPECT_TRUE(at::equal(transformed(name, lower).eq(0), lower.eq(0))) << name;
    at::Tensor z = transformed(name, any);
    EXPECT_FALSE(at::equal(z, z.t())) << name;
  }
}

TEST(Compare, NotANumber) {
  auto truth = normals(10);
  auto candidate = rounded(truth);
  candidate[3] = NAN;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kNotFinite);
  candidate[3] = INFINITY;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kNotFinite);
  truth[3] = INFINITY;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kPass);
  candidate[3] = -INFINITY;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kWrongOutput);
  truth[3] = NAN;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kWrongOutput);
  candidate[3] = NAN;
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kPass);
}

TEST(Compare, ZerosMustBeZeros) {
  std::vector<double> truth(8, 0.0);
  EXPECT_EQ(judge(std::vector<float>(8, 0.0f), truth).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(judge(std::vector<float>(8, 1e-6f), truth).finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, IntegersAndBooleansAreExact) {
  at::Tensor a = at::tensor({1, 2, 3}, at::kLong), b = at::tensor({1, 2, 4}, at::kLong);
  EXPECT_EQ(compare(a, a, a).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare(b, a, a).finding.outcome(), Outcome::kWrongOutput);
  EXPECT_EQ(compare(b, a, b).finding.outcome(), Outcome::kPass);  // A tie broken in float64.
  EXPECT_EQ(compare(a.gt(0), a.gt(1), a.gt(1)).finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, SixteenBitTypes) {
  // 1.0, 2.0, -0.5, 65504 and a subnormal, as float16 and (the first ones) as bfloat16.
  at::Tensor h = bits({0x3c00, 0x4000, -0x4800, 0x7bff, 0x0001}, at::kHalf);
  EXPECT_EQ(compare(h, h, doubles({1.0, 2.0, -0.5, 65504, 5.960464477539063e-8})).finding.outcome(), Outcome::kPass);
  at::Tensor truth = doubles({1.0, 2.0});
  EXPECT_EQ(compare(bits({0x3c40, 0x4000}, at::kHalf), bits({0x3c00, 0x4000}, at::kHalf), truth).finding.outcome(),
            Outcome::kWrongOutput);  // 1.0625.
  at::Tensor b = bits({0x3f80, 0x4000}, at::kBFloat16);
  EXPECT_EQ(compare(b, b, truth).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare(bits({0x3f80, -0x4000}, at::kBFloat16), b, truth).finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, EmptyTensorsAndScalars) {
  at::Tensor empty = at::empty({0, 3}), two = at::tensor(2.0f);
  EXPECT_EQ(compare(empty, empty, empty.to(at::kDouble)).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare(two, two, two.to(at::kDouble)).finding.outcome(), Outcome::kPass);
}

}  // namespace
}  // namespace tritonrl::compare_test
