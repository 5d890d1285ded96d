// SPDX-License-Identifier: Apache-2.0
// 8-bit matrices: their error, their products against those of the same values in plain form, and a decoder on them.
#include "model/int8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "model/decoder.h"
#include "model/files/tensor_io.h"
#include "model/train_graph.h"

namespace tritonrl::int8_test {
namespace {

const std::string kGolden = source_dir() + "/tests/golden/model/";

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  auto out = at::empty(shape, at::kFloat);
  Rng rng(seed);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = static_cast<float>(2 * rng.uniform() - 1);
  return out;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

at::Tensor golden(const std::string& file, const std::string& name) {
  auto tensors = SafetensorsFile::open(kGolden + file);
  return to_tensor(*tensors.find(name));
}

std::vector<int32_t> golden_tokens(const std::string& model) {
  auto t = golden(model + "/expected.safetensors", "tokens").to(at::kInt).contiguous();
  return {t.data_ptr<int32_t>(), t.data_ptr<int32_t>() + t.numel()};
}

std::shared_ptr<const Weights> load(const std::string& model, bool int8, int64_t group = 0,
                                    at::ScalarType dtype = at::kFloat) {
  LoadOptions options;
  options.dtype = dtype;
  options.int8 = int8;
  options.int8_group = group;
  return load_weights(kGolden + model, options);
}

// The same values, kept as an ordinary base.
std::shared_ptr<const Weights> as_plain(const Weights& quantized) {
  auto out = std::make_shared<Weights>(quantized);
  for (auto& layer : out->layers) {
    for (auto* linear : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) {
      *linear = make_linear(plain_weight(*linear).to(out->dtype), linear->bias_N, false, true);
    }
  }
  return out;
}

int64_t matrix_bytes(const Weights& weights) {
  int64_t bytes = 0;
  for (const auto& layer : weights.layers) {
    for (const auto* linear : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) bytes += weight_bytes(*linear);
  }
  return bytes;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "no error";
}

TEST(Int8, NoWeightMovesByMoreThanHalfAStep) {
  auto weight = random({70, 96}, 1) * at::logspace(-6, 2, 70).unsqueeze(1);
  weight[3].zero_();
  for (int64_t group : {0, 8, 32}) {
    Int8Matrix m = quantize_int8(weight, group);
    int64_t groups = group == 0 ? 1 : 96 / group;
    ASSERT_EQ(m.scale_GN.sizes(), (std::vector<int64_t>{groups, 70}));
    EXPECT_EQ(m.q_NK.scalar_type(), at::kChar);
    EXPECT_EQ(m.q_NK.abs().max().item<int>(), 127);  // The largest of a row is a whole number of steps, 127.
    auto error = (dequantize(m, at::kFloat) - weight).abs().view({70, groups, 96 / groups});
    auto bound = m.scale_GN.t().unsqueeze(2) * 0.50001;
    EXPECT_TRUE((error <= bound).all().item<bool>()) << group;
    EXPECT_GT(error.max().item<double>(), 0);
    EXPECT_EQ(dequantize(m, at::kFloat)[3].abs().max().item<float>(), 0);
  }
}

TEST(Int8, SmallerGroupsAreAtLeastAsExact) {
  auto weight = random({64, 128}, 2);
  weight = weight * weight * weight;  // Few large weights.
  auto error = [&](int64_t group) {
    return (dequantize(quantize_int8(weight, group), at::kFloat) - weight).norm().item<double>();
  };
  EXPECT_LT(error(64), error(0));
  EXPECT_LT(error(16), error(64));
}

TEST(Int8, RefusesGroupsThatDoNotFitAndWeightsThatAreNotFinite) {
  auto weight = random({8, 48}, 3);
  for (int64_t group : {-8, 4, 7, 32, 96}) {
    EXPECT_THAT(error_of([&] { quantize_int8(weight, group, "q_proj"); }), testing::HasSubstr("q_proj")) << group;
  }
  EXPECT_NO_THROW(quantize_int8(weight, 16));
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    weight[2][3] = bad;
    EXPECT_THAT(error_of([&] { quantize_int8(weight, 0); }), testing::HasSubstr("not finite"));
  }
  EXPECT_THAT(error_of([] { load("llama_tiny", true, 32); }), testing::HasSubstr("self_attn.q_proj.weight"));
}

// Sizes with part panels, an odd number of inputs, and more rows than pass over one panel in turn.
TEST(Int8, ProductsEqualThoseOfThePlainMatrixBitForBit) {
  struct Size {
    int64_t n, k, group, t;
  };
  for (Size s : {Size{64, 64, 0, 7}, Size{70, 96, 0, 1}, Size{129, 48, 16, 13}, Size{200, 136, 8, 300},
                 Size{3, 35, 0, 5}, Size{65, 2, 0, 4}}) {
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
      auto bias = random({s.n}, 5);
      Linear quantized = make_linear(quantize_int8(random({s.n, s.k}, 4), s.group), bias);
      Linear plain = make_linear(plain_weight(quantized).to(dtype), bias, false, true);
      auto x = random({s.t, s.k}, 6).to(dtype), dy = random({s.t, s.n}, 7).to(dtype);
      auto where = testing::Message() << s.n << "x" << s.k << " group " << s.group << " " << dtype;
      EXPECT_TRUE(at::equal(linear(quantized, x), linear(plain, x))) << where;
      EXPECT_TRUE(at::equal(linear_float(quantized, x), linear_float(plain, x))) << where;
      EXPECT_TRUE(at::equal(linear_transposed(quantized, dy), linear_transposed(plain, dy))) << where;
      auto sum = random({s.t, s.n}, 8), expected = sum.clone();
      linear_add_(quantized, x, sum);
      linear_add_(plain, x, expected);
      EXPECT_TRUE(at::equal(sum, expected)) << where;
    }
  }
}

TEST(Int8, PlainWeightIsWhatWasQuantized) {
  Int8Matrix m = quantize_int8(random({70, 96}, 4), 32);
  EXPECT_TRUE(at::equal(plain_weight(make_linear(m)), dequantize(m, at::kFloat)));
  EXPECT_TRUE(at::equal(dequantize(m, at::kBFloat16), dequantize(m, at::kFloat).to(at::kBFloat16)));  // Rounded once.
}

TEST(Int8, TakesOneByteAWeight) {
  auto weight = random({1024, 512}, 9).to(at::kBFloat16);
  int64_t weights = 1024 * 512, scales = 4 * 1024;
  EXPECT_EQ(weight_bytes(make_linear(quantize_int8(weight, 0))), weights + scales);
  EXPECT_EQ(weight_bytes(make_linear(quantize_int8(weight, 64))), weights + scales * 8);
  EXPECT_EQ(weight_bytes(make_linear(weight, {}, false, true)), weights * 4);  // Both packed forms.
}

class Int8Models : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Int8Models, testing::Values("llama_tiny", "qwen2_tiny"));

// Measured: logits off by 3.8 % (llama_tiny) and 5.5 % (qwen2_tiny) with one scale a row, 2.6 % and 4.0 % with groups
// of 8; loss by at most 0.021. These models are touchy: noise uniform in half a step each way moves logits by 4 % and 6
// %, rounding to bfloat16 by 2.6 % and 3.3 %.
TEST_P(Int8Models, LogitsAndLossStayClose) {
  auto tokens = golden_tokens(GetParam());
  auto expected = golden(std::string(GetParam()) + "/expected.safetensors", "logits");
  PackedBatch batch;
  batch.append(tokens, std::vector<float>(tokens.size(), 1.0f / static_cast<float>(tokens.size() - 1)));
  double loss = forward(*load(GetParam(), false), nullptr, batch).loss;
  double errors[2];
  for (int64_t group : {0, 8}) {
    auto weights = load(GetParam(), true, group);
    auto logits = forward_logits(*weights, nullptr, tokens);
    double error = (logits - expected).norm().item<double>() / expected.norm().item<double>();
    EXPECT_GT(error, 1e-5);  // It really was 8 bits.
    EXPECT_LT(error, 0.07);
    EXPECT_NEAR(forward(*weights, nullptr, batch).loss, loss, 0.03);
    errors[group == 0 ? 0 : 1] = error;
  }
  EXPECT_LT(errors[1], errors[0]);
}

TEST_P(Int8Models, GradientsEqualThoseOnTheDequantizedBase) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    auto quantized = load(GetParam(), true, 8, dtype), plain = as_plain(*quantized);
    auto adapter = LoraAdapter::load(kGolden + GetParam() + "/adapter", *quantized), twin = adapter.clone();
    auto tokens = golden_tokens(GetParam());
    PackedBatch batch;
    batch.append(tokens, std::vector<float>(tokens.size(), 0.1f));
    adapter.zero_gradients();
    twin.zero_gradients();
    double loss = forward_backward(*quantized, adapter, batch, Rng(1)).loss;
    EXPECT_EQ(loss, forward_backward(*plain, twin, batch, Rng(1)).loss);
    auto got = adapter.gradients(), want = twin.gradients();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_GT(want[i].abs().max().item<double>(), 0);
      EXPECT_TRUE(at::equal(got[i], want[i])) << i;
    }
  }
}

TEST_P(Int8Models, GeneratesWithTheAdapterBesideTheBase) {
  auto base = load(GetParam(), true);
  auto adapter = LoraAdapter::load(kGolden + GetParam() + "/adapter", *base);
  auto merged = merge(*base, adapter);
  EXPECT_EQ(matrix_bytes(*merged), matrix_bytes(*base));
  EXPECT_TRUE(merged->layers[0].down.int8.is_same(base->layers[0].down.int8));  // Shared, not copied.
  auto tokens = golden_tokens(GetParam());
  auto expected = forward_logits(*base, &adapter, tokens);
  EXPECT_GT(max_difference(forward_logits(*base, nullptr, tokens), expected), 0.01);
  EXPECT_LT(max_difference(forward_logits(*merge(*as_plain(*base), adapter), nullptr, tokens), expected), 2e-4);
  Decoder decoder(merged, 2, 80);
  std::vector<DecoderRow> prompt;
  for (int32_t p = 0; p < 40; ++p) prompt.push_back({tokens[static_cast<size_t>(p)], 0, p});
  std::vector<int64_t> last = {39};
  EXPECT_LT(max_difference(decoder.run(prompt, last)[0], expected[39]), 2e-4);
  std::vector<DecoderRow> row = {{tokens[40], 0, 40}};
  std::vector<int64_t> first = {0};
  EXPECT_LT(max_difference(decoder.run(row, first)[0], expected[40]), 2e-4);
}

TEST_P(Int8Models, RowsBesideAnAdapterDoNotDependOnTheirBatch) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    auto base = load(GetParam(), true, 0, dtype);
    auto weights = merge(*base, LoraAdapter::load(kGolden + GetParam() + "/adapter", *base));
    auto run = [&](int32_t companions) {
      Decoder decoder(weights, 9, 32);
      at::Tensor out;
      for (int32_t p = 0; p < 10; ++p) {
        std::vector<DecoderRow> rows;
        for (int32_t s = 0; s < companions; ++s) rows.push_back({100 + s * 7 + p, s + 1, p});
        rows.push_back({5 * p + 3, 0, p});
        std::vector<int64_t> wanted = {companions};
        out = decoder.run(rows, wanted);
      }
      return out.clone();
    };
    EXPECT_TRUE(at::equal(run(0), run(7)));
    EXPECT_TRUE(at::equal(run(0), run(3)));
  }
}

}  // namespace
}  // namespace tritonrl::int8_test
