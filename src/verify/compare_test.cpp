// SPDX-License-Identifier: Apache-2.0
// The judge: what it must accept (honest rounding) and what it must reject (everything planted here).
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "verify/case_run.h"

namespace tritonrl::compare_test {
namespace {

// A tensor that owns its bytes.
struct Owned {
  std::string bytes;
  BlobView view;
};

template <class T>
Owned tensor(const std::vector<T>& values, Dtype dtype, std::vector<int64_t> shape = {}) {
  Owned out;
  out.bytes.resize(values.size() * sizeof(T) + 1);  // + 1: never a short string, so that moves keep the view valid.
  out.bytes.reserve(64);
  if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), values.size() * sizeof(T));
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  out.view = {dtype, shape, std::string_view(out.bytes.data(), values.size() * sizeof(T))};
  return out;
}
Owned floats(const std::vector<float>& v, std::vector<int64_t> shape = {}) { return tensor(v, Dtype::kFloat32, shape); }
Owned doubles(const std::vector<double>& v, std::vector<int64_t> shape = {}) {
  return tensor(v, Dtype::kFloat64, shape);
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
  Owned c = floats(candidate), r = floats(rounded(truth)), t = doubles(truth);
  return compare_tensor(c.view, r.view, t.view, "output", precision);
}

TEST(Compare, AcceptsHonestRounding) {
  auto truth = normals(10000);
  auto candidate = rounded(truth);
  EXPECT_EQ(judge(candidate, truth).finding.outcome(), Outcome::kPass);
  for (size_t i = 0; i < candidate.size(); ++i) candidate[i] *= 1 + (i % 2 ? 1e-5f : -1e-5f);
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
  const std::string products = "acc += tl.dot(a, b)\n", sums = "acc += tl.sum(a * b, axis=1)\n";
  EXPECT_EQ(precision_of(other, products), Precision::kOtherProducts);
  EXPECT_EQ(precision_of(other, sums), Precision::kOther);
  EXPECT_EQ(precision_of(own, products), Precision::kOwn);
}

TEST(Compare, RejectsManySmallErrorsBelowTheWorstElementBound) {
  auto truth = normals(10000);
  auto candidate = rounded(truth);
  for (float& x : candidate) x += 8e-5f;  // Each within 1e-4 of the scale, together too many.
  Comparison result = judge(candidate, truth);
  EXPECT_EQ(result.finding.outcome(), Outcome::kWrongOutput);
  EXPECT_NE(human_text(result.finding).find("imprecise"), std::string::npos) << human_text(result.finding);
}

TEST(Compare, AllowsAMultipleOfTheReferencesOwnErrorUpToTheCap) {
  std::vector<double> truth(100, 1.0);
  std::vector<float> reference(100, 1.001f), candidate(100, 0.998f);
  Owned r = floats(reference), t = doubles(truth), c = floats(candidate);
  EXPECT_EQ(compare_tensor(c.view, r.view, t.view, "o").finding.outcome(), Outcome::kPass);
  std::vector<float> poor(100, 2.0f), poorer(100, 1.5f);
  Owned bad = floats(poor), half = floats(poorer);
  EXPECT_EQ(compare_tensor(half.view, bad.view, t.view, "o").finding.outcome(), Outcome::kWrongOutput);  // Capped.
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

TEST(Compare, ShapesDtypesAndStructure) {
  Owned a = floats({1, 2, 3, 4}, {2, 2}), b = floats({1, 2, 3, 4}, {4, 1}), t = doubles({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(compare_tensor(b.view, a.view, t.view, "o").finding.outcome(), Outcome::kWrongOutput);
  Owned d = doubles({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(human_text(compare_tensor(d.view, a.view, t.view, "o").finding), "o has dtype float64, expected float32");
  using View = Nest<BlobView>;
  View leaf{View::Kind::kLeaf, a.view, {}, {}, {}}, truth{View::Kind::kLeaf, t.view, {}, {}, {}};
  View tuple{View::Kind::kTuple, {}, {}, {}, {leaf, leaf}}, two{View::Kind::kTuple, {}, {}, {}, {truth, truth}};
  EXPECT_EQ(compare_outputs(leaf, leaf, truth).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare_outputs(tuple, tuple, two).finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare_outputs(leaf, tuple, two).finding.outcome(), Outcome::kWrongOutput);
  View list = tuple;
  list.kind = View::Kind::kList;
  EXPECT_EQ(compare_outputs(list, tuple, two).finding.outcome(), Outcome::kWrongOutput);
  View one = tuple;
  one.children.pop_back();
  EXPECT_EQ(compare_outputs(one, tuple, two).finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, IntegersAndBooleansAreExact) {
  Owned a = tensor<int64_t>({1, 2, 3}, Dtype::kInt64), b = tensor<int64_t>({1, 2, 4}, Dtype::kInt64);
  EXPECT_EQ(compare_tensor(a.view, a.view, a.view, "o").finding.outcome(), Outcome::kPass);
  EXPECT_EQ(compare_tensor(b.view, a.view, a.view, "o").finding.outcome(), Outcome::kWrongOutput);
  EXPECT_EQ(compare_tensor(b.view, a.view, b.view, "o").finding.outcome(), Outcome::kPass);  // A tie broken in float64.
  Owned yes = tensor<uint8_t>({1, 0}, Dtype::kBool), no = tensor<uint8_t>({1, 1}, Dtype::kBool);
  EXPECT_EQ(compare_tensor(no.view, yes.view, yes.view, "o").finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, SixteenBitTypes) {
  // 1.0, 2.0, -0.5, 65504 and a subnormal, as float16 and (the first three) as bfloat16.
  std::vector<uint16_t> halves = {0x3c00, 0x4000, 0xb800, 0x7bff, 0x0001};
  Owned h = tensor(halves, Dtype::kFloat16);
  Owned t = doubles({1.0, 2.0, -0.5, 65504, 5.960464477539063e-8});
  EXPECT_EQ(compare_tensor(h.view, h.view, t.view, "o").finding.outcome(), Outcome::kPass);
  halves[0] = 0x3c40;  // 1.0625: hidden below the rounding of 65504 by the scale's rms, so compare without it.
  Owned near = tensor<uint16_t>({0x3c40, 0x4000}, Dtype::kFloat16),
        two = tensor<uint16_t>({0x3c00, 0x4000}, Dtype::kFloat16);
  Owned t2 = doubles({1.0, 2.0});
  EXPECT_EQ(compare_tensor(near.view, two.view, t2.view, "o").finding.outcome(), Outcome::kWrongOutput);
  Owned b = tensor<uint16_t>({0x3f80, 0x4000}, Dtype::kBfloat16);
  EXPECT_EQ(compare_tensor(b.view, b.view, t2.view, "o").finding.outcome(), Outcome::kPass);
  Owned b2 = tensor<uint16_t>({0x3f80, 0xc000}, Dtype::kBfloat16);
  EXPECT_EQ(compare_tensor(b2.view, b.view, t2.view, "o").finding.outcome(), Outcome::kWrongOutput);
}

TEST(Compare, EmptyTensorsAndScalars) {
  Owned empty = floats({}, {0, 3}), truth = doubles({}, {0, 3});
  EXPECT_EQ(compare_tensor(empty.view, empty.view, truth.view, "o").finding.outcome(), Outcome::kPass);
  Owned c = tensor<float>({2.0f}, Dtype::kFloat32), t = tensor<double>({2.0}, Dtype::kFloat64);
  c.view.shape = t.view.shape = {};
  EXPECT_EQ(compare_tensor(c.view, c.view, t.view, "o").finding.outcome(), Outcome::kPass);
}

TEST(Compare, ControlsThatMustFail) {
  auto nest = [](const Owned& o) { return Nest<BlobView>{Nest<BlobView>::Kind::kLeaf, o.view, {}, {}, {}}; };
  auto values = normals(50);
  Owned r = floats(rounded(values)), t = doubles(values);
  EXPECT_EQ(control_that_passes(nest(r), nest(t)), "");
  Owned zeros = floats(std::vector<float>(8, 0)), zeros_t = doubles(std::vector<double>(8, 0));
  EXPECT_EQ(control_that_passes(nest(zeros), nest(zeros_t)), "zeros");
  Owned same = floats(std::vector<float>(8, 0.125f)), same_t = doubles(std::vector<double>(8, 0.125));
  EXPECT_NE(control_that_passes(nest(same), nest(same_t)).find("rotated"), std::string::npos);
}

}  // namespace
}  // namespace tritonrl::compare_test
