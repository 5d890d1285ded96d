// SPDX-License-Identifier: Apache-2.0
// The decoder against transformers' and PEFT's numbers (tests/golden/model/ORIGIN.md), and against itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "model/decoder.h"
#include "model/files/merge_folder.h"
#include "model/files/tensor_io.h"
#include "model/train_graph.h"

namespace tritonrl::transformer_test {
namespace {

namespace fs = std::filesystem;
const std::string kGolden = source_dir() + "/tests/golden/model/";

std::shared_ptr<const Weights> load(const std::string& folder, at::ScalarType dtype = at::kFloat) {
  LoadOptions options;
  options.dtype = dtype;
  return load_weights(folder, options);
}

struct Expected {
  explicit Expected(const std::string& path) : file(SafetensorsFile::open(path)) {}
  at::Tensor get(const std::string& name) const {
    const TensorView* view = file.find(name);
    if (!view) throw std::runtime_error("no golden tensor " + name);
    return to_tensor(*view);
  }
  SafetensorsFile file;
};

std::vector<int32_t> to_vector(const at::Tensor& t) {
  auto ints = t.to(at::kInt).contiguous();
  return {ints.data_ptr<int32_t>(), ints.data_ptr<int32_t>() + ints.numel()};
}

double max_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

class TinyModels : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, TinyModels, testing::Values("llama_tiny", "llama3_rope_tiny", "qwen2_tiny"));

TEST_P(TinyModels, LogitsEqualTransformers) {
  Expected expected(kGolden + GetParam() + "/expected.safetensors");
  auto logits = forward_logits(*load(kGolden + GetParam()), nullptr, to_vector(expected.get("tokens")));
  EXPECT_LT(max_difference(logits, expected.get("logits")), 1e-4);
}

TEST_P(TinyModels, BfloatLogitsAreClose) {
  Expected expected(kGolden + GetParam() + "/expected.safetensors");
  auto logits = forward_logits(*load(kGolden + GetParam(), at::kBFloat16), nullptr, to_vector(expected.get("tokens")));
  double error = (logits - expected.get("logits")).norm().item<double>() / expected.get("logits").norm().item<double>();
  EXPECT_LT(error, 0.05);
  EXPECT_GT(error, 1e-6);  // It really was bfloat16.
}

TEST_P(TinyModels, DecoderEqualsWholeSequence) {
  auto weights = load(kGolden + GetParam());
  auto tokens = to_vector(Expected(kGolden + GetParam() + "/expected.safetensors").get("tokens"));
  auto whole = forward_logits(*weights, nullptr, tokens);
  Decoder decoder(weights, 3, 80);
  std::vector<DecoderRow> prompt;
  for (int32_t p = 0; p < 40; ++p) prompt.push_back({tokens[static_cast<size_t>(p)], 0, p});
  std::vector<int64_t> last = {39};
  EXPECT_LT(max_difference(decoder.run(prompt, last)[0], whole[39]), 1e-4);
  decoder.copy_prefix(0, 2, 40);
  for (int32_t p = 40; p < 70; ++p) {
    std::vector<DecoderRow> row = {{tokens[static_cast<size_t>(p)], 2, p}};
    std::vector<int64_t> wanted = {0};
    EXPECT_LT(max_difference(decoder.run(row, wanted)[0], whole[p]), 1e-4) << "position " << p;
  }
}

TEST_P(TinyModels, RowsDoNotDependOnTheirBatch) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    auto weights = load(kGolden + GetParam(), dtype);
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

class LoraGolden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, LoraGolden, testing::Values("llama_tiny", "qwen2_tiny"));

TEST_P(LoraGolden, LossAndGradientsEqualAutograd) {
  std::string folder = kGolden + GetParam();
  Expected expected(folder + "/lora_expected.safetensors");
  auto weights = load(folder);
  auto adapter = LoraAdapter::load(folder + "/adapter", *weights);
  auto tokens = to_vector(Expected(folder + "/expected.safetensors").get("tokens"));
  EXPECT_LT(max_difference(forward_logits(*weights, &adapter, tokens), expected.get("logits")), 2e-4);
  EXPECT_LT(max_difference(forward_logits(*merge(*weights, adapter), nullptr, tokens), expected.get("logits")), 2e-4);

  // The golden loss is the mean over the second half; another packed sequence with no loss must change nothing.
  std::vector<float> loss_weights(tokens.size(), 0);
  for (size_t t = tokens.size() / 2; t < tokens.size(); ++t)
    loss_weights[t] = 1.0f / static_cast<float>(tokens.size() / 2);
  PackedBatch batch;
  batch.append({7, 8, 9, 10, 11}, std::vector<float>(5, 0));
  batch.append(tokens, loss_weights);
  adapter.zero_gradients();
  LossResult result = forward_backward(*weights, adapter, batch, Rng(1));
  EXPECT_NEAR(result.loss, expected.get("loss").item<double>(), 1e-4);
  auto log_probs = expected.get("log_probs");
  for (size_t i = 0; i < result.log_probs.size(); ++i) {
    EXPECT_NEAR(result.log_probs[i], log_probs[static_cast<int64_t>(i)].item<float>(), 2e-4);
  }
  auto gradients = adapter.gradients();
  size_t index = 0;
  adapter.for_each_parameter([&](const std::string& name, at::Tensor&) {
    auto want = expected.get("grad." + name);
    double scale = want.abs().max().item<double>();
    EXPECT_GT(scale, 0) << name;
    EXPECT_LT(max_difference(gradients[index], want), 1e-4 + 1e-4 * scale) << name;
    ++index;
  });
}

TEST_P(LoraGolden, MergedFolderIsBaseAndAdapter) {
  std::string folder = kGolden + GetParam(), out = testing::TempDir() + "/merged_" + GetParam();
  fs::remove_all(out);
  MergeReport report = merge_adapter(folder, folder + "/adapter", out);
  EXPECT_GT(report.merged, 0);
  EXPECT_GT(report.tensors, report.merged);
  auto weights = load(folder), merged = load(out);
  auto adapter = LoraAdapter::load(folder + "/adapter", *weights);
  std::vector<int32_t> tokens = {1, 2, 30, 4, 55};
  auto with_adapter = forward_logits(*weights, &adapter, tokens), plain = forward_logits(*weights, nullptr, tokens);
  EXPECT_LT(max_difference(forward_logits(*merged, nullptr, tokens), with_adapter), 1e-4);
  EXPECT_GT(max_difference(plain, with_adapter), 1e-2);
  EXPECT_THROW(merge_adapter(folder, folder + "/adapter", out), Error);  // It holds a model already.
  std::string other = std::string(GetParam()) == "llama_tiny" ? "qwen2_tiny" : "llama_tiny";
  EXPECT_THROW(merge_adapter(kGolden + other, folder + "/adapter", out + "_other"), Error);
}

TEST_P(LoraGolden, SavedAdapterLoadsAgain) {
  std::string folder = kGolden + GetParam(), copy = testing::TempDir() + "/adapter_" + GetParam();
  auto weights = load(folder);
  auto adapter = LoraAdapter::load(folder + "/adapter", *weights);
  adapter.save(copy, "base");
  auto again = LoraAdapter::load(copy, *weights);
  auto a = adapter.parameters(), b = again.parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i]));
  EXPECT_EQ(again.config.rank, adapter.config.rank);
}

TEST(Lora, FreshAdapterChangesNothingAndDropoutChangesGradients) {
  auto weights = load(kGolden + "llama_tiny");
  LoraConfig config;
  config.dropout = 0.3;
  auto adapter = LoraAdapter::create(*weights, config, Rng(3));
  std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(max_difference(forward_logits(*weights, nullptr, tokens), forward_logits(*weights, &adapter, tokens)), 0);
  for (auto& layer : adapter.layers) layer.down[0].b_NR.fill_(0.1);
  PackedBatch batch;
  batch.append(tokens, std::vector<float>(6, 1));
  auto gradient = [&](uint64_t seed) {
    adapter.zero_gradients();
    forward_backward(*weights, adapter, batch, Rng(seed));
    return adapter.gradients()[1].clone();
  };
  EXPECT_TRUE(at::equal(gradient(1), gradient(1)));
  EXPECT_FALSE(at::equal(gradient(1), gradient(2)));
}

TEST(Lora, RecomputedActivationsGiveTheSameGradients) {
  for (const char* model : {"llama_tiny", "qwen2_tiny"}) {
    auto weights = load(kGolden + model);
    LoraConfig config;
    config.dropout = 0.3;
    auto adapter = LoraAdapter::create(*weights, config, Rng(3));
    at::manual_seed(1);
    for (auto& p : adapter.parameters()) p.normal_(0, 0.1);
    PackedBatch batch;
    batch.append({1, 2, 300, 4, 5}, std::vector<float>(5, 1));
    batch.append({9, 8, 77}, std::vector<float>(3, 0.5));
    Objective objective{0.7, [&](const LossResult& rows, RowGradients* gradients) {
                          gradients->weights.assign(rows.log_probs.size(), 1);
                          gradients->entropies.assign(rows.log_probs.size(), 0.1f);
                          return 0.0;
                        }};
    for (bool with_objective : {false, true}) {
      std::vector<std::vector<at::Tensor>> gradients;
      std::vector<LossResult> results;
      for (Keep keep : {Keep::kActivations, Keep::kInputs}) {
        adapter.zero_gradients();
        results.push_back(with_objective ? forward_backward(*weights, adapter, batch, Rng(5), objective, keep)
                                         : forward_backward(*weights, adapter, batch, Rng(5), keep));
        gradients.emplace_back();
        for (const auto& g : adapter.gradients()) gradients.back().push_back(g.clone());
      }
      EXPECT_EQ(results[0].log_probs, results[1].log_probs);
      double size = 0;
      for (size_t i = 0; i < gradients[0].size(); ++i) {
        EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i])) << model << " " << i;
        size += gradients[0][i].abs().sum().item<double>();
      }
      EXPECT_GT(size, 1);
    }
  }
}

// A loss of log-probabilities and entropies at a temperature, against its own differences.
TEST(Objective, GradientIsTheSlopeOfTheLoss) {
  auto weights = load(kGolden + "llama_tiny");
  LoraConfig config;
  config.dropout = 0;
  auto adapter = LoraAdapter::create(*weights, config, Rng(3));
  for (auto& layer : adapter.layers) layer.down[0].b_NR.normal_(0, 0.3);
  PackedBatch batch;
  batch.append({1, 2, 300, 4, 5}, std::vector<float>(5, 1));
  batch.append({9, 8, 77}, std::vector<float>(3, 1));
  for (bool with_entropy : {false, true}) {
    Objective objective{0.7, [&](const LossResult& rows, RowGradients* gradients) {
                          double loss = 0;
                          for (size_t i = 0; i < rows.log_probs.size(); ++i) {
                            double p = std::exp(rows.log_probs[i] / 8), c = 0.1 * static_cast<double>(i) - 0.2;
                            loss += p + (with_entropy ? c * rows.entropies[i] : 0);
                            gradients->weights.push_back(static_cast<float>(-p / 8));
                            if (with_entropy) gradients->entropies.push_back(static_cast<float>(c));
                          }
                          return loss;
                        }};
    adapter.zero_gradients();
    LossResult rows = forward_backward(*weights, adapter, batch, Rng(1), objective);
    EXPECT_EQ(rows.log_probs.size(), 6u);
    auto plain = forward(*weights, &adapter, batch, 0.7).log_probs;
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], rows.log_probs[i], 1e-5);
    auto parameters = adapter.parameters(), gradients = adapter.gradients();
    std::vector<at::Tensor> slopes;
    double expected = 0, h = 1e-3, losses[2];
    for (auto& g : gradients) {
      slopes.push_back(g.clone());
      expected += g.square().sum().item<double>();
    }
    expected = std::sqrt(expected);
    for (int side : {0, 1}) {
      double step = (side ? 2 : -1) * h / expected;
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].add_(slopes[i], step);
      losses[side] = forward_backward(*weights, adapter, batch, Rng(1), objective).loss;
    }
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].sub_(slopes[i], h / expected);
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * h), expected, 0.01 * expected) << with_entropy;
  }
}

// Padded rows of the head have no part in any distribution, gradient or entropy.
TEST(Objective, TokensThatCannotBeSampledHaveNoShare) {
  constexpr int64_t kLimit = 100;
  LoadOptions options;
  options.dtype = at::kFloat;
  auto all = load_weights(kGolden + "qwen2_tiny", options);
  options.vocab_limit = kLimit;
  auto limited = load_weights(kGolden + "qwen2_tiny", options);
  ASSERT_GT(all->config.vocab_size, kLimit);
  PackedBatch batch;
  std::vector<int32_t> tokens;
  for (int32_t t = 0; t < 20; ++t) tokens.push_back(t * 7 % 90);
  batch.append(tokens, std::vector<float>(tokens.size(), 0.1f));
  auto logits = forward_logits(*all, nullptr, tokens);
  auto log_p = at::log_softmax(logits.slice(1, 0, kLimit), -1);
  LossResult result = forward(*limited, nullptr, batch);
  auto adapter = LoraAdapter::create(*limited, LoraConfig{}, Rng(1));
  adapter.zero_gradients();
  LossResult rows;
  Objective objective;
  objective.loss = [&](const LossResult& given, RowGradients* gradients) {
    rows = given;
    gradients->weights.assign(given.log_probs.size(), 0.1f);
    gradients->entropies.assign(given.log_probs.size(), 0.1f);
    return 0.0;
  };
  forward_backward(*limited, adapter, batch, Rng(1), objective);
  for (size_t r = 0; r < batch.loss_rows.size(); ++r) {
    auto row = log_p[batch.loss_rows[r]];
    double expected = row[tokens[r + 1]].item<double>();
    EXPECT_NEAR(result.log_probs[r], expected, 1e-4);
    EXPECT_NEAR(rows.log_probs[r], expected, 1e-4);
    EXPECT_NEAR(rows.entropies[r], -(row.exp() * row).sum().item<double>(), 1e-4);
  }
  for (const auto& gradient : adapter.gradients()) EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());

  // Of the head itself: none for the rows that are out.
  LoraConfig full;
  full.full = true;
  for (bool with_entropy : {false, true}) {
    auto every = LoraAdapter::create(*limited, full, Rng(1));
    every.zero_gradients();
    if (with_entropy) {
      forward_backward(*limited, every, batch, Rng(1), objective);
    } else {
      forward_backward(*limited, every, batch, Rng(1));
    }
    auto head = every.gradients().back();
    ASSERT_EQ(head.size(0), all->config.vocab_size);
    EXPECT_LT(head.slice(0, kLimit).abs().max().item<double>(), 1e-30);  // exp() of a kernel may stop short of 0.
    EXPECT_GT(head.slice(0, 0, kLimit).abs().max().item<double>(), 0);
  }
}

TEST(Dropout, KeepsTheRightShareAndItsBackwardIsTheSameMask) {
  auto x = at::ones({500, 401});
  auto y = seeded_dropout(x, 0.3, 12345), again = seeded_dropout(x, 0.3, 12345), other = seeded_dropout(x, 0.3, 12346);
  double kept = (y > 0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(kept, 0.7, 4 * std::sqrt(0.21 / 200500));
  EXPECT_TRUE(at::equal(y, again));
  double both = ((y > 0).logical_and(other > 0)).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(both, 0.49, 0.006);  // Neighbouring seeds are independent.
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.7, 1e-4);
  auto rows = (y > 0).to(at::kDouble).mean(1);  // No row or column is favoured.
  EXPECT_LT((rows - 0.7).abs().max().item<double>(), 0.12);
}

TEST(SmolLm2, LogitsEqualTransformers) {
  const char* given = std::getenv("TRITONRL_MODEL_DIR");
  std::string folder = given ? given : source_dir() + "/models/smollm2-135m-instruct";
  if (!fs::exists(folder + "/config.json")) GTEST_SKIP() << "no SmolLM2 at " << folder << "; run quickstart.sh once";
  Expected expected(kGolden + "smollm2_expected.safetensors");
  auto logits = forward_logits(*load(folder), nullptr, to_vector(expected.get("tokens")));
  auto want = expected.get("logits_every_64th");
  EXPECT_LT(max_difference(logits.slice(0, 0, logits.size(0), 8).slice(1, 0, logits.size(1), 64), want), 1e-3);
}

// ---------------------------------------------------------------------------------------------------------- bad input

class BadModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/bad_model";
    fs::remove_all(folder_);
    fs::copy(kGolden + "llama_tiny", folder_);
    json_ = read_json(folder_ + "/config.json");
  }
  std::string error() {
    write_file(folder_ + "/config.json", json_.dump());
    try {
      load(folder_);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      return e.what();
    }
    return "no error";
  }
  std::string folder_;
  Json json_;
};

TEST_F(BadModel, UnsupportedModelType) {
  json_["model_type"] = "mamba";
  EXPECT_THAT(error(), testing::HasSubstr("'mamba' is not supported"));
}
TEST_F(BadModel, WrongShape) {
  json_["intermediate_size"] = 81;
  EXPECT_THAT(error(), testing::HasSubstr("mlp.gate_proj.weight"));
}
TEST_F(BadModel, MissingTensor) {
  json_["num_hidden_layers"] = 3;
  EXPECT_THAT(error(), testing::HasSubstr("model.layers.2."));
}
TEST_F(BadModel, UnsupportedRopeScaling) {
  json_["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  json_.erase("rope_parameters");
  EXPECT_THAT(error(), testing::HasSubstr("'yarn' is not supported"));
}
TEST_F(BadModel, MissingWeights) {
  fs::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(error(), testing::HasSubstr("safetensors"));
}
TEST_F(BadModel, AdapterOfAnotherModel) {
  auto other = load(kGolden + "qwen2_tiny");
  EXPECT_THROW(LoraAdapter::load(kGolden + "llama_tiny/adapter", *other), Error);
}

}  // namespace
}  // namespace tritonrl::transformer_test
