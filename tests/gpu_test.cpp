// SPDX-License-Identifier: Apache-2.0
// The decoder on a GPU against the same goldens as on the CPU. Skips with a message where there is no GPU.
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/process/build_paths.h"
#include "model/cuda/graph.h"
#include "model/device.h"
#include "model/files/tensor_io.h"
#include "model/train_graph.h"
#include "policy/generate.h"

namespace tritonrl::gpu_test {
namespace {

class Gpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_cuda_driver()) GTEST_SKIP() << "no NVIDIA driver on this machine";
    folder_ = std::string(source_dir() + "/tests/golden/model/") + GetParam();
    weights_ = load(open_device("cuda"));
    tokens_ = ints(golden("expected", "tokens"));
  }
  std::shared_ptr<const Weights> load(at::Device device, bool int8 = false, int64_t int8_group = 0) {
    LoadOptions options;
    options.dtype = at::kFloat;
    options.int8 = int8;
    options.int8_group = int8_group;
    options.device = device;
    return load_weights(folder_, options);
  }
  at::Tensor golden(const std::string& file, const std::string& name) {
    auto tensors = SafetensorsFile::open(folder_ + "/" + file + ".safetensors");
    return to_tensor(*tensors.find(name));
  }
  static std::vector<int32_t> ints(const at::Tensor& t) {
    return {t.data_ptr<int32_t>(), t.data_ptr<int32_t>() + t.numel()};
  }

  std::string folder_;
  std::shared_ptr<const Weights> weights_;
  std::vector<int32_t> tokens_;
};
INSTANTIATE_TEST_SUITE_P(All, Gpu, testing::Values("llama_tiny", "qwen2_tiny"));

TEST_P(Gpu, LogitsEqualTransformers) {
  auto difference = forward_logits(*weights_, nullptr, tokens_).cpu() - golden("expected", "logits");
  EXPECT_LT(difference.abs().max().item<double>(), 1e-3);
}

TEST_P(Gpu, GradientsEqualAutograd) {
  auto adapter = LoraAdapter::load(folder_ + "/adapter", *weights_);
  std::vector<float> loss(tokens_.size(), 0);
  for (size_t t = loss.size() / 2; t < loss.size(); ++t) loss[t] = 1.0f / static_cast<float>(loss.size() / 2);
  PackedBatch batch;
  batch.append(tokens_, loss);
  adapter.zero_gradients();
  EXPECT_NEAR(forward_backward(*weights_, adapter, batch, Rng(1)).loss, golden("lora_expected", "loss").item<double>(),
              1e-3);
  auto gradients = adapter.gradients();
  size_t index = 0;
  adapter.for_each_parameter([&](const std::string& name, at::Tensor&) {
    auto want = golden("lora_expected", "grad." + name);
    double scale = want.abs().max().item<double>();
    EXPECT_LT((gradients[index++].cpu() - want).abs().max().item<double>(), 1e-3 + 1e-3 * scale) << name;
  });
}

TEST_P(Gpu, GreedyGenerationEqualsTheCpus) {
  std::vector<GenerateRequest> requests = {{{5, 6, 7, 8}, 2, Rng(1)}, {{100, 3}, 1, Rng(2)}, {{9, 30, 2}, 1, Rng(3)}};
  SamplingConfig greedy;
  greedy.temperature = 0;
  greedy.max_new_tokens = 10;
  auto run = [&](std::shared_ptr<const Weights> weights) {
    std::vector<std::vector<int32_t>> tokens;
    for (int64_t slots : {4, 40}) {  // On the GPU, with 40 the prompts are computed together.
      Decoder decoder(weights, slots, 32);
      for (const auto& answers : generate(decoder, requests, greedy, {})) {
        for (const Generated& answer : answers) tokens.push_back(answer.tokens);
      }
    }
    return tokens;
  };
  EXPECT_EQ(run(weights_), run(load(at::kCPU)));
}

// Decoding steps are recorded and started again; the sequences end one after the other, so that numbers of rows come
// that are recorded and others that are filled up.
TEST_P(Gpu, RecordedStepsEqualWholeSequences) {
  ASSERT_NE(cuda::make_graphs(weights_->device), nullptr) << "no CUDA graphs here";
  constexpr int32_t kSequences = 19;
  std::vector<std::vector<int32_t>> sequences;
  std::vector<at::Tensor> whole;
  for (int32_t s = 0; s < kSequences; ++s) {
    std::vector<int32_t> tokens = tokens_;
    std::rotate(tokens.begin(), tokens.begin() + s, tokens.end());
    tokens.resize(static_cast<size_t>(4 + 2 * s));
    whole.push_back(forward_logits(*weights_, nullptr, tokens).cpu());
    sequences.push_back(std::move(tokens));
  }
  Decoder decoder(weights_, kSequences, 64);
  for (int32_t position = 0; position < 40; ++position) {
    std::vector<DecoderRow> rows;
    std::vector<int64_t> wanted;
    std::vector<at::Tensor> expected;
    for (int32_t s = 0; s < kSequences; ++s) {
      if (position >= static_cast<int32_t>(sequences[static_cast<size_t>(s)].size())) continue;
      wanted.push_back(static_cast<int64_t>(rows.size()));
      rows.push_back({sequences[static_cast<size_t>(s)][static_cast<size_t>(position)], 7 * s % kSequences, position});
      expected.push_back(whole[static_cast<size_t>(s)][position]);
    }
    auto difference = decoder.run(rows, wanted).cpu() - at::stack(expected);
    EXPECT_LT(difference.abs().max().item<double>(), 1e-3) << rows.size() << " rows at " << position;
  }
}

// The default dtype, and an 8-bit base with its adapter beside it, over more positions than one recorded step sees:
// against the same steps unrecorded (the logits are wanted in another order, so they count as a prompt's).
TEST_P(Gpu, RecordedStepsEqualUnrecordedOnes) {
  for (bool int8 : {false, true}) {
    LoadOptions options;
    options.device = open_device("cuda");
    options.dtype = at::kBFloat16;
    options.int8 = int8;
    auto base = load_weights(folder_, options);
    auto weights = merge(*base, LoraAdapter::load(folder_ + "/adapter", *base));
    int64_t capacity = std::min<int64_t>(600, weights->rope.cos.size(0));
    constexpr int32_t kSequences = 5;
    Decoder recorded(weights, kSequences, capacity), plain(weights, kSequences, capacity);
    std::vector<int64_t> in_order = {0, 1, 2, 3, 4}, backwards = {4, 3, 2, 1, 0};
    for (int32_t position = 0; position < capacity; ++position) {
      std::vector<DecoderRow> rows;
      for (int32_t s = 0; s < kSequences; ++s) {
        rows.push_back({tokens_[static_cast<size_t>(position + 3 * s) % tokens_.size()], s, position});
      }
      auto one = recorded.run(rows, in_order).cpu(), other = plain.run(rows, backwards).cpu().flip(0);
      double scale = other.abs().max().item<double>();
      ASSERT_LT((one - other).abs().max().item<double>(), 0.03 * scale + 0.01)
          << "position " << position << ", int8 " << int8;
    }
  }
}

// Memory that recorded steps took is there for the next ones.
TEST_P(Gpu, DecodersLeaveNothingBehind) {
  auto* allocator = at::getDeviceAllocator(at::kCUDA);
  auto reserved = [&] {
    auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return allocator->getDeviceStats(weights_->device.index()).reserved_bytes[all].current;
  };
  std::vector<int64_t> sizes;
  for (int round = 0; round < 12; ++round) {
    Decoder decoder(weights_, 8, 64);
    for (int32_t position = 0; position < 6; ++position) {
      std::vector<DecoderRow> rows;
      std::vector<int64_t> wanted;
      for (int32_t s = 0; s < 8; ++s) {
        rows.push_back({tokens_[static_cast<size_t>(position)], s, position});
        wanted.push_back(s);
      }
      decoder.run(rows, wanted).cpu();
    }
    sizes.push_back(reserved());
  }
  EXPECT_LE(sizes.back(), sizes[3]) << "after twelve and after four decoders";
}

// Full fine-tuning.
TEST_P(Gpu, GradientsOfEveryWeightEqualTheCpus) {
  PackedBatch batch;
  for (int32_t begin : {3, 90}) {
    std::vector<int32_t> tokens;
    for (int32_t t = 0; t < 24; ++t) tokens.push_back(begin + t * 11 % 80);
    std::vector<float> weights(tokens.size(), 0.1f);
    batch.append(tokens, weights);
  }
  LoraConfig config;
  config.full = true;
  std::vector<std::vector<at::Tensor>> gradients;
  for (auto& weights : {weights_, load(at::kCPU)}) {
    auto all = LoraAdapter::create(*weights, config, Rng(1));
    all.zero_gradients();
    forward_backward(*weights, all, batch, Rng(1));
    gradients.push_back(all.gradients());
  }
  ASSERT_EQ(gradients[0].size(), gradients[1].size());
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    double scale = gradients[1][i].abs().max().item<double>();
    EXPECT_LT((gradients[0][i].cpu() - gradients[1][i]).abs().max().item<double>(), 1e-4 + 2e-3 * scale) << i;
  }
}

// rl.staleness: one thread draws from a snapshot, in a stream of its own, while another trains.
TEST_P(Gpu, SamplingBesideTrainingDrawsWhatItDrawsAlone) {
  std::vector<GenerateRequest> requests;
  for (int32_t r = 0; r < 12; ++r) requests.push_back({{5 + r, 6, 7, 8 + r}, 4, Rng(static_cast<uint64_t>(r))});
  SamplingConfig sampling;
  sampling.temperature = 0.7;
  sampling.max_new_tokens = 40;
  auto adapter = LoraAdapter::load(folder_ + "/adapter", *weights_);
  auto snapshot = merge(*weights_, adapter);
  auto draw = [&] {
    Decoder decoder(snapshot, 16, 64);
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& answers : generate(decoder, requests, sampling, {})) {
      for (const Generated& answer : answers) tokens.push_back(answer.tokens);
    }
    return tokens;
  };
  auto alone = draw();
  PackedBatch batch;
  batch.append(tokens_, std::vector<float>(tokens_.size(), 0.1f));
  auto gradients_of = [&] {
    adapter.zero_gradients();
    forward_backward(*weights_, adapter, batch, Rng(1));
    return adapter.gradients()[0].cpu();
  };
  at::Tensor quiet = gradients_of();
  for (int round = 0; round < 3; ++round) {
    wait_for(weights_->device);
    std::atomic<bool> drawing{true};
    std::vector<std::vector<int32_t>> beside;
    std::thread sampler([&] {
      OwnStream stream(weights_->device);
      beside = draw();
      drawing = false;
    });
    while (drawing) EXPECT_LT((gradients_of() - quiet).abs().max().item<double>(), 1e-3);
    sampler.join();
    EXPECT_EQ(beside, alone);
  }
}

TEST_P(Gpu, AnInt8BaseEqualsTheCpus) {
  std::vector<float> loss(tokens_.size(), 1.0f / static_cast<float>(tokens_.size()));
  PackedBatch batch;
  batch.append(tokens_, loss);
  for (int64_t group : {0, 8}) {
    auto here = load(open_device("cuda"), true, group), there = load(at::kCPU, true, group);
    ASSERT_EQ(here->layers[0].down.int8.scalar_type(), at::kChar);
    EXPECT_TRUE(at::equal(plain_weight(here->layers[1].gate_up).cpu(), plain_weight(there->layers[1].gate_up)));
    auto adapter = LoraAdapter::load(folder_ + "/adapter", *here),
         twin = LoraAdapter::load(folder_ + "/adapter", *there);
    auto expected = forward_logits(*there, &twin, tokens_);
    auto off = [&](const at::Tensor& logits) { return (logits.cpu() - expected).abs().max().item<double>(); };
    EXPECT_LT(off(forward_logits(*here, &adapter, tokens_)), 1e-3);
    EXPECT_LT(off(forward_logits(*merge(*here, adapter), nullptr, tokens_)), 1e-3);
    Decoder decoder(merge(*here, adapter), 2, 80);
    std::vector<DecoderRow> prompt;
    for (int32_t p = 0; p < 40; ++p) prompt.push_back({tokens_[static_cast<size_t>(p)], 0, p});
    std::vector<int64_t> last = {39};
    EXPECT_LT((decoder.run(prompt, last)[0].cpu() - expected[39]).abs().max().item<double>(), 1e-3);
    adapter.zero_gradients();
    twin.zero_gradients();
    EXPECT_NEAR(forward_backward(*here, adapter, batch, Rng(1)).loss,
                forward_backward(*there, twin, batch, Rng(1)).loss, 1e-3);
    auto got = adapter.gradients(), want = twin.gradients();
    for (size_t i = 0; i < got.size(); ++i) {
      double scale = want[i].abs().max().item<double>();
      EXPECT_LT((got[i].cpu() - want[i]).abs().max().item<double>(), 1e-3 + 1e-3 * scale) << i;
    }
  }
}

}  // namespace
}  // namespace tritonrl::gpu_test
