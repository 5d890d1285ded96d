// SPDX-License-Identifier: Apache-2.0
// Full fine-tuning: gradients of every weight against differences of the loss, and what stays and what moves.
#include "model/files/full_weights.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "model/decoder.h"
#include "model/train_graph.h"

namespace tritonrl::full_weights_test {
namespace {

namespace fs = std::filesystem;
const std::string kGolden = source_dir() + "/tests/golden/model/";

std::shared_ptr<const Weights> load(const std::string& folder, at::ScalarType dtype = at::kFloat, bool int8 = false) {
  LoadOptions options;
  options.dtype = dtype;
  options.int8 = int8;
  return load_weights(folder, options);
}

LoraAdapter whole(const Weights& weights) {
  LoraConfig config;
  config.full = true;
  return LoraAdapter::create(weights, config, Rng(1));
}

PackedBatch two_sequences() {
  PackedBatch batch;
  for (int32_t begin : {3, 90}) {
    std::vector<int32_t> tokens;
    std::vector<float> weights;
    for (int32_t t = 0; t < 14; ++t) {
      tokens.push_back(begin + t * 11 % 80);
      weights.push_back(t < 5 ? 0 : 0.1f * static_cast<float>(t % 3 + 1));
    }
    batch.append(tokens, weights);
  }
  return batch;
}

class FullTuning : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return kGolden + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(All, FullTuning, testing::Values("llama_tiny", "llama3_rope_tiny", "qwen2_tiny"));

// Along its own direction a gradient is the slope of the loss.
TEST_P(FullTuning, GradientsAreTheSlopesOfTheLoss) {
  auto base = load(folder());
  PackedBatch batch = two_sequences();
  Objective objective{0.8, [](const LossResult& rows, RowGradients* gradients) {
                        double loss = 0;
                        for (size_t i = 0; i < rows.log_probs.size(); ++i) {
                          double weight = i % 2 == 0 ? 0.3 : -0.1;
                          loss += -weight * rows.log_probs[i] - 0.2 * rows.entropies[i];
                          gradients->weights.push_back(static_cast<float>(weight));
                          gradients->entropies.push_back(-0.2f);
                        }
                        return loss;
                      }};
  for (bool with_objective : {false, true}) {
    LoraAdapter all = whole(*base);
    auto loss = [&] {
      all.zero_gradients();
      return with_objective ? forward_backward(*base, all, batch, Rng(1), objective).loss
                            : forward_backward(*base, all, batch, Rng(1)).loss;
    };
    loss();
    FullTensors gradients = all.full->gradients;
    std::vector<std::pair<std::string, at::Tensor>> slopes;
    gradients.for_each([&](const std::string& name, at::Tensor& t) { slopes.emplace_back(name, t); });
    size_t i = 0;
    double total = 0;
    all.for_each_parameter([&](const std::string& name, at::Tensor& parameter) {
      ASSERT_EQ(slopes[i].first, name);
      const at::Tensor& gradient = slopes[i++].second;
      double norm = gradient.norm().item<double>();
      ASSERT_GT(norm, 1e-6) << name;
      total += norm * norm;
      at::Tensor before = parameter.clone(), step = gradient / norm;
      double width = 0.01 / norm;  // The loss moves by a hundredth.
      auto at = [&](double by) {
        parameter.copy_(before + step * by);
        all.changed();
        return loss();
      };
      double slope = (8 * (at(width) - at(-width)) - (at(2 * width) - at(-2 * width))) / (12 * width);
      EXPECT_NEAR(slope / norm, 1, 0.02) << name << " of " << norm << (with_objective ? ", objective" : "");
      parameter.copy_(before);
      all.changed();
    });
    EXPECT_EQ(i, slopes.size());
    EXPECT_GT(total, 0);
  }
}

TEST_P(FullTuning, BeginsAsTheBaseAndRecomputationChangesNoBit) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    auto base = load(folder(), dtype);
    LoraAdapter all = whole(*base);
    std::vector<int32_t> tokens = {5, 9, 2, 77, 31};
    EXPECT_TRUE(at::equal(forward_logits(*base, &all, tokens), forward_logits(*base, nullptr, tokens)));
    EXPECT_TRUE(at::equal(forward_logits(*merge(*base, all), nullptr, tokens), forward_logits(*base, nullptr, tokens)));
    std::vector<at::Tensor> gradients[2];
    for (bool again : {false, true}) {
      all.zero_gradients();
      forward_backward(*base, all, two_sequences(), Rng(1), again ? Keep::kInputs : Keep::kActivations);
      gradients[again] = all.gradients();
    }
    ASSERT_EQ(gradients[0].size(), all.parameters().size());
    for (size_t i = 0; i < gradients[0].size(); ++i) EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i]));
  }
}

TEST_P(FullTuning, FoldersHoldTheSameBitsAndAreModels) {
  std::string out = testing::TempDir() + "/full_" + GetParam();
  fs::remove_all(out);
  auto base = load(folder(), at::kBFloat16);
  LoraAdapter all = whole(*base);
  double moved = 0;
  all.for_each_parameter([&](const std::string&, at::Tensor& t) { t.add_(1e-3 * ++moved); });
  all.changed();
  all.save(out, folder());
  LoraAdapter back = LoraAdapter::load(out, *base);
  ASSERT_TRUE(back.full);
  auto before = all.parameters(), after = back.parameters();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i]));
  std::vector<int32_t> tokens = {5, 9, 2, 77, 31};
  auto logits = forward_logits(*base, &all, tokens);
  EXPECT_FALSE(at::equal(logits, forward_logits(*base, nullptr, tokens)));
  EXPECT_TRUE(at::equal(logits, forward_logits(*base, &back, tokens)));
  EXPECT_TRUE(at::equal(logits, forward_logits(*load(out, at::kBFloat16), nullptr, tokens))) << "a model by itself";
  EXPECT_EQ(read_json(out + "/config.json").value("dtype", read_json(out + "/config.json").value("torch_dtype", "")),
            "float32");
}

TEST(FullWeightsTest, SnapshotsAndClonesStayWhatTheyWere) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    auto base = load(kGolden + "llama_tiny", dtype);
    LoraAdapter all = whole(*base);
    LoraAdapter copy = all.clone();
    auto snapshot = merge(*base, all);
    std::vector<int32_t> tokens = {5, 9, 2, 77, 31};
    auto start = forward_logits(*base, &all, tokens);
    all.for_each_parameter([](const std::string&, at::Tensor& t) { t.mul_(1.5); });
    all.changed();
    EXPECT_FALSE(at::equal(forward_logits(*base, &all, tokens), start));
    EXPECT_TRUE(at::equal(forward_logits(*snapshot, nullptr, tokens), start));
    EXPECT_TRUE(at::equal(forward_logits(*base, &copy, tokens), start));
    EXPECT_TRUE(at::equal(forward_logits(*base, nullptr, tokens), start));
    std::vector<DecoderRow> rows;
    for (int32_t p = 0; p < 5; ++p) rows.push_back({tokens[static_cast<size_t>(p)], 0, p});
    std::vector<int64_t> wanted = {4};
    Decoder decoder(snapshot, 2, 8);
    EXPECT_LT((decoder.run(rows, wanted)[0] - start[4]).abs().max().item<double>(), dtype == at::kFloat ? 1e-4 : 0.2);
  }
}

TEST(FullWeightsTest, RefusesWhatCannotBe) {
  auto int8 = load(kGolden + "llama_tiny", at::kBFloat16, true);
  EXPECT_THROW(whole(*int8), Error);
  auto llama = load(kGolden + "llama_tiny"), qwen = load(kGolden + "qwen2_tiny");
  std::string out = testing::TempDir() + "/full_refused";
  fs::remove_all(out);
  whole(*qwen).save(out, kGolden + "qwen2_tiny");
  EXPECT_THROW(LoraAdapter::load(out, *llama), Error);
}

}  // namespace
}  // namespace tritonrl::full_weights_test
