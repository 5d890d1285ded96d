// SPDX-License-Identifier: Apache-2.0
// The operations of model/ops.h on a GPU against those of the CPU, on sizes that do and do not divide by eight.
#include <gtest/gtest.h>

#include <cmath>

#include "model/cuda/kernels.h"
#include "model/device.h"
#include "model/ops.h"
#include "policy/sampling.h"
#include "train/optimizer.h"

namespace tritonrl::gpu_ops_test {
namespace {

using Type = at::ScalarType;

class GpuOps : public testing::TestWithParam<Type> {
 protected:
  void SetUp() override {
    if (!has_cuda_driver()) GTEST_SKIP() << "no NVIDIA driver on this machine";
    device_ = open_device("cuda");
    at::manual_seed(1);
  }
  // Of the type under test, on the CPU.
  at::Tensor draw(at::IntArrayRef shape) { return at::randn(shape).to(GetParam()); }
  at::Tensor there(const at::Tensor& x) { return x.to(device_, x.scalar_type(), false, true); }  // A copy.
  // bfloat16 has 8 bits: results of two roundings may differ by one of the last.
  double limit() const { return GetParam() == at::kFloat ? 2e-5 : 2e-2; }
  void expect_close(const at::Tensor& got, const at::Tensor& want, const char* what, double slack = 1) {
    auto difference = (got.cpu().to(at::kDouble) - want.to(at::kDouble)).abs();
    auto allowed = want.to(at::kDouble).abs().add_(1).mul_(limit() * slack);
    EXPECT_TRUE((difference <= allowed).all().item<bool>()) << what << ": " << difference.max().item<double>();
  }

  at::Device device_ = at::kCPU;
};
INSTANTIATE_TEST_SUITE_P(Types, GpuOps, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "Float" : "Bfloat16"; });

TEST_P(GpuOps, RmsNormAndItsGradient) {
  for (int64_t h : {64, 576, 37, 4096}) {
    auto x = at::randn({5, h}), weight = at::rand({h}) + 0.5, dy = draw({5, h}), dx = at::randn({5, h});
    auto x2 = there(x), weight2 = there(weight), dy2 = there(dy), dx2 = there(dx);
    at::Tensor inverse, inverse2;
    expect_close(rms_norm(x2, weight2, 1e-5, GetParam(), &inverse2), rms_norm(x, weight, 1e-5, GetParam(), &inverse),
                 "forward");
    EXPECT_LT((inverse2.cpu() - inverse).abs().max().item<double>(), 1e-5);
    rms_norm_backward_add_(dy, x, weight, inverse, dx);
    rms_norm_backward_add_(dy2, x2, weight2, inverse2, dx2);
    EXPECT_LT((dx2.cpu() - dx).abs().max().item<double>(), 1e-4) << h;
  }
}

TEST_P(GpuOps, RopeSwigluDropout) {
  for (int64_t d : {64, 6}) {
    std::vector<double> frequencies;
    for (int64_t j = 0; j < d / 2; ++j)
      frequencies.push_back(std::pow(1e4, -2.0 * static_cast<double>(j) / static_cast<double>(d)));
    auto table = make_rope_table(frequencies, 50, at::kCPU), table2 = make_rope_table(frequencies, 50, device_);
    auto x = draw({7, 5 * d}), x2 = there(x);
    auto position = at::tensor({0, 3, 49, 7, 1, 2, 11}, at::kInt);
    for (float sign : {1.0f, -1.0f}) {
      rope_(x, 3, d, position, table, sign);
      rope_(x2, 3, d, there(position), table2, sign);
      expect_close(x2, x, "rope", 4);
    }
  }
  for (int64_t width : {1536, 30}) {
    auto gate_up = draw({9, 2 * width}), dh = draw({9, width});
    expect_close(swiglu(there(gate_up)), swiglu(gate_up), "swiglu", 4);
    expect_close(swiglu_backward(there(dh), there(gate_up)), swiglu_backward(dh, gate_up), "swiglu backward", 4);
    auto kept = seeded_dropout(dh, 0.25, 0x123456789abcdefULL),
         kept2 = seeded_dropout(there(dh), 0.25, 0x123456789abcdefULL).cpu();
    if (!cuda::kernels(device_)) continue;  // ATen's masks are its own.
    EXPECT_TRUE(at::equal(kept == 0, kept2 == 0)) << "the masks are the CPU's";
    expect_close(kept2, kept, "dropout");
  }
}

TEST_P(GpuOps, CrossEntropyAndItsGradient) {
  for (int64_t v : {49152, 101}) {
    auto logits = draw({6, v}) * 4, weight = at::rand({6}), target = at::randint(v, {6}, at::kInt);
    auto again = logits.clone(), logits2 = there(logits), again2 = there(logits);
    auto want = cross_entropy_(logits, target, {}), got = cross_entropy_(logits2, there(target), {});
    EXPECT_LT((got.cpu() - want).abs().max().item<double>(), 1e-3);
    cross_entropy_(again, target, weight);
    cross_entropy_(again2, there(target), there(weight));
    EXPECT_LT((again2.cpu().to(at::kFloat) - again.to(at::kFloat)).abs().max().item<double>(), limit() / 4) << v;
  }
}

TEST_P(GpuOps, AttentionSeesItsSequenceOnly) {
  for (HeadCounts counts : {HeadCounts{9, 3, 64}, HeadCounts{4, 4, 16}, HeadCounts{14, 2, 128}}) {
    std::vector<int64_t> starts = {0, 5, 6, 150, 217};
    int64_t width = (counts.heads + 2 * counts.kv_heads) * counts.head_dim;
    auto qkv = draw({217, width}), dout = draw({217, counts.heads * counts.head_dim});
    auto here = make_sequences(starts, at::kCPU), on_gpu = make_sequences(starts, device_);
    AttentionSaved saved, saved2;
    expect_close(attention(there(qkv), on_gpu, counts, &saved2), attention(qkv, here, counts, &saved), "forward", 2);
    expect_close(attention_backward(there(dout), there(qkv), on_gpu, counts, saved2),
                 attention_backward(dout, qkv, here, counts, saved), "backward", 4);
  }
}

TEST_P(GpuOps, RowsSeeTheirPartOfTheCache) {
  for (HeadCounts counts : {HeadCounts{9, 3, 64}, HeadCounts{4, 4, 16}, HeadCounts{14, 2, 128}}) {
    int64_t slots = 5, capacity = 70, rows = 6;
    auto cache = [&] { return draw({slots, counts.kv_heads, capacity, counts.head_dim}); };
    auto k = cache(), v = cache(), k2 = there(k), v2 = there(v);
    auto qkv = draw({rows, (counts.heads + 2 * counts.kv_heads) * counts.head_dim}), qkv2 = there(qkv);
    auto slot = at::tensor({4, 0, 2, 2, 2, 1}, at::kInt), position = at::tensor({69, 0, 30, 31, 32, 12}, at::kInt);
    auto here = make_cache_rows(slot, position, 70, counts, capacity),
         on_gpu = make_cache_rows(there(slot), there(position), 70, counts, capacity);
    store_cache(qkv, k, v, here, counts);
    store_cache(qkv2, k2, v2, on_gpu, counts);
    EXPECT_TRUE(at::equal(k2.cpu(), k) && at::equal(v2.cpu(), v));
    expect_close(attend_cache(qkv2, k2, v2, on_gpu, counts), attend_cache(qkv, k, v, here, counts), "attend", 2);
  }
}

TEST_P(GpuOps, AnInt8MatrixIsTheSame) {
  for (int64_t group : {0, 8, 32}) {
    auto matrix = quantize_int8(at::randn({40, 64}), group);
    auto here = make_linear(matrix), on_gpu = make_linear({there(matrix.q_NK), there(matrix.scale_GN)});
    auto x = draw({3, 64});
    expect_close(linear(on_gpu, there(x)), linear(here, x), "product", 8);
  }
}

TEST(GpuDraw, TheSameUniformsDrawTheSameTokens) {
  if (!has_cuda_driver()) GTEST_SKIP() << "no NVIDIA driver on this machine";
  auto device = open_device("cuda");
  at::manual_seed(2);
  int64_t rows = 64;
  for (int64_t v : {49152, 1000, 33}) {
    auto logits = at::randn({rows, v}) * 3;
    int64_t limit = v - 3;
    for (double temperature : {0.0, 0.7, 1.0}) {
      SamplingConfig config;
      config.temperature = temperature;
      std::vector<double> uniform;
      std::vector<SampledToken> want;
      for (int64_t r = 0; r < rows; ++r) {
        Rng rng = Rng(5).at(static_cast<uint64_t>(r));
        want.push_back(sample_token(logits.data_ptr<float>() + r * v, limit, config, rng));
        uniform.push_back(temperature == 0 ? -1 : rng.uniform());
      }
      auto drawn =
          draw_rows(logits.to(device), limit, temperature == 0 ? 1.0f : static_cast<float>(1 / temperature), uniform);
      if (!drawn.token_T.defined()) GTEST_SKIP() << "without our CUDA kernels";
      auto token = drawn.token_T.cpu(), log_prob = drawn.log_prob_T.cpu();
      int64_t other = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const SampledToken& expected = want[static_cast<size_t>(r)];
        other += token.data_ptr<int32_t>()[r] != expected.token;  // A uniform on the edge of two.
        ASSERT_LT(token.data_ptr<int32_t>()[r], limit);
        if (token.data_ptr<int32_t>()[r] == expected.token) {
          EXPECT_NEAR(log_prob.data_ptr<float>()[r], expected.log_prob, 1e-4);
        }
      }
      EXPECT_LE(other, temperature == 0 ? 0 : 1) << v;
    }
  }
}

TEST(GpuDraw, FollowsTheDistribution) {
  if (!has_cuda_driver()) GTEST_SKIP() << "no NVIDIA driver on this machine";
  auto device = open_device("cuda");
  int64_t rows = 4000, v = 100;
  auto logits = at::zeros({v});
  for (int64_t i = 0; i < v; ++i) logits[i] = i < 90 ? -INFINITY : 0.3 * static_cast<double>(i - 90);
  auto p = at::softmax(logits, 0);
  std::vector<double> uniform;
  for (int64_t r = 0; r < rows; ++r) uniform.push_back((static_cast<double>(r) + 0.5) / static_cast<double>(rows));
  auto drawn = draw_rows(logits.expand({rows, v}).contiguous().to(device), v, 1, uniform);
  if (!drawn.token_T.defined()) GTEST_SKIP() << "without our CUDA kernels";
  auto counts = at::bincount(drawn.token_T.cpu().to(at::kLong), {}, v).to(at::kDouble) / static_cast<double>(rows);
  EXPECT_LT((counts - p).abs().max().item<double>(), 1e-3);
}

TEST(GpuAdamW, TakesTheStepsOfTheCpus) {
  if (!has_cuda_driver()) GTEST_SKIP() << "no NVIDIA driver on this machine";
  auto device = open_device("cuda");
  at::manual_seed(3);
  OptimizerConfig config;
  config.weight_decay = 0.1;
  config.max_grad_norm = 1;
  std::vector<at::Tensor> here = {at::randn({7, 3}), at::randn({130})}, there;
  for (const auto& p : here) there.push_back(p.to(device, at::kFloat, false, true));
  AdamW cpu(config, here), gpu(config, there);
  for (int step = 0; step < 5; ++step) {
    std::vector<at::Tensor> g = {at::randn({7, 3}), at::randn({130})}, g2 = {g[0].to(device), g[1].to(device)};
    EXPECT_NEAR(gpu.step(g2, 0.01), cpu.step(g, 0.01), 1e-4);
  }
  for (size_t i = 0; i < here.size(); ++i) EXPECT_LT((there[i].cpu() - here[i]).abs().max().item<double>(), 1e-5);
  auto nan = at::full({7, 3}, NAN).to(device), rest = at::zeros({130}).to(device), before = there[0].clone();
  EXPECT_TRUE(std::isnan(gpu.step({nan, rest}, 0.01)));
  EXPECT_TRUE(at::equal(there[0], before));
}

}  // namespace
}  // namespace tritonrl::gpu_ops_test
