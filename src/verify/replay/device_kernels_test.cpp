// SPDX-License-Identifier: Apache-2.0
// Our own kernels against ATen's operators on the CPU. Skips with a message where there is no GPU.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "verify/execute/judge_slots.h"
#include "verify/judge/error_kernels.h"
#include "verify/judge/value_marks.h"
#include "verify/replay/own_kernels.h"
#include "verify/replay/timing.h"

namespace tritonrl::device_kernels_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(OwnKernels, CompileForEveryArchitecture) {
  if (!has_nvrtc()) GTEST_SKIP() << "libnvrtc is not here; tools/setup.sh brings it with torch";
  EXPECT_EQ(own_program().kernels.size(), 15u);
  for (int capability : {80, 90, 100}) {
    Cubin cubin = compile_cuda(own_program(), capability, "");
    EXPECT_EQ(cubin.symbols.size(), own_program().kernels.size());
    for (const auto& [kernel, symbol] : cubin.symbols) {
      EXPECT_THAT(cubin.image, testing::HasSubstr(symbol)) << kernel << " for sm_" << capability;
    }
  }
}

TEST(Timing, RunsAreAlikeWhereOnlyRoundingDiffers) {
  EXPECT_TRUE(alike_runs({100, 3}, {100.01, 2.999}));
  EXPECT_TRUE(alike_runs({0, NAN, kInfinity}, {0, NAN, kInfinity}));
  EXPECT_TRUE(alike_runs({}, {}));
  EXPECT_FALSE(alike_runs({100}, {NAN})) << "an element that was never written is NaN, and so is the sum";
  EXPECT_FALSE(alike_runs({NAN}, {100}));
  EXPECT_FALSE(alike_runs({kInfinity}, {100}));
  EXPECT_FALSE(alike_runs({100, 3}, {100, 1}));
  EXPECT_FALSE(alike_runs({1}, {0}));
  EXPECT_FALSE(alike_runs({1}, {1, 1}));
}

class DeviceKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (JudgeSlots::devices().empty()) GTEST_SKIP() << "no NVIDIA GPU on this machine";
    at::manual_seed(3);
  }
};

void expect_near(double got, double expected, const char* what) {
  EXPECT_NEAR(got, expected, 1e-9 * std::abs(expected) + 1e-300) << what;
}

TEST_F(DeviceKernels, ErrorsAreThoseOfTheCpu) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (int64_t n : {1, 31, 33, 1000, 4'000'037}) {
      at::Tensor truth = at::randn({n}, at::kDouble), other = truth.add(at::randn({n}, at::kDouble), 0.01).to(dtype);
      for (bool special : {false, true}) {
        if (special && n < 1000) continue;
        if (special) {
          other[3] = kInfinity;
          other[n - 1] = NAN;
          truth[77] = NAN;
          truth[78] = -kInfinity;
        }
        at::Tensor t = truth.cuda(), o = other.cuda();
        ErrorMoments moments = error_moments(t, o), same = error_moments(truth, other);
        EXPECT_EQ(moments.finite, same.finite);
        EXPECT_EQ(moments.finite, n - (special ? 4 : 0));
        expect_near(moments.truth_squares, same.truth_squares, "truth");
        expect_near(moments.error_squares, same.error_squares, "error");
        at::Tensor slack = at::rand({truth.numel() / 16 + 2}, at::kFloat).mul_(1e-3);
        Slack here{slack, 4, 5}, there{slack.to("cuda:0"), 4, 5};
        BoundedError bounded = bounded_error(t, o, 1e-2, 1e-3, there),
                     same_bound = bounded_error(truth, other, 1e-2, 1e-3, here);
        if (special) {
          EXPECT_EQ(bounded.worst, kInfinity);
          EXPECT_EQ(same_bound.worst, kInfinity);
        } else {
          expect_near(bounded.squares, same_bound.squares, "squares");
          expect_near(bounded.worst, same_bound.worst, "bounded");
        }
      }
    }
  }
}

TEST_F(DeviceKernels, SpansAreFilledAndNothingBesideThem) {
  at::Tensor words = at::zeros({5000}, at::TensorOptions("cuda:0").dtype(at::kInt)), expected = words.cpu();
  Spans spans{};
  const int64_t begins[] = {1, 700, 3000}, counts[] = {1, 1024, 1999};
  for (size_t i = 0; i < 3; ++i) {
    spans.at[i] = reinterpret_cast<CUdeviceptr>(words.data_ptr()) + static_cast<CUdeviceptr>(4 * begins[i]);
    spans.words[i] = static_cast<uint32_t>(counts[i]);
    expected.narrow(0, begins[i], counts[i]).fill_(7);
  }
  OwnKernels::get().fill(spans, 3, 7);
  EXPECT_TRUE(words.cpu().equal(expected));
}

TEST_F(DeviceKernels, MarksShowEveryByte) {
  for (int64_t bytes : {1, 3, 4, 7, 1000, 5'000'001}) {
    TraceFile file;
    CaseTrace trace;
    trace.values.resize(2);
    Tape tape(file, trace, TapeOptions{at::Device("cuda:0"), false, nullptr});
    at::Tensor value = at::randint(0, 256, {bytes}, at::TensorOptions("cuda:0").dtype(at::kByte)),
               other = value.clone();
    tape.bind(0, value);
    tape.bind(1, other);
    uint64_t key = new_mark_key();
    ValueMarks before = mark_values(tape, key);
    ASSERT_EQ(before.size(), 2u);
    EXPECT_EQ(before.at(0), before.at(1));
    EXPECT_TRUE(changed_values(before, mark_values(tape, key, &before)).empty());
    for (int64_t at : {int64_t{0}, bytes / 2, bytes - 1}) {
      other[at].bitwise_xor_(1);
      EXPECT_EQ(changed_values(before, mark_values(tape, key, &before)), std::vector<int64_t>{1}) << bytes << " " << at;
      other[at].bitwise_xor_(1);
    }
    if (bytes > 8 && !other[0].equal(other[4])) {  // Swapped words are another content.
      at::Tensor words = other.narrow(0, 0, 8).clone();
      other.narrow(0, 0, 4).copy_(words.narrow(0, 4, 4));
      other.narrow(0, 4, 4).copy_(words.narrow(0, 0, 4));
      EXPECT_EQ(changed_values(before, mark_values(tape, key, &before)), std::vector<int64_t>{1}) << bytes;
    }
  }
}

}  // namespace
}  // namespace tritonrl::device_kernels_test
