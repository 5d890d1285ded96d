// SPDX-License-Identifier: Apache-2.0
// Tokens per second of LoRA training steps and of generation, as JSON lines: bench_model FOLDER [int8 | int8:GROUP]
// [sft|gen1|gen16|gen64 ...]. With int8 the base is 8-bit, and generation has an adapter beside it.
// bench/compare_transformers.sh runs it beside transformers + PEFT on the same weights, sizes and machine.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "model/device.h"
#include "model/train_graph.h"
#include "policy/generate.h"
#include "train/optimizer.h"

namespace {

using namespace tritonrl;

// The sizes of a typical SFT batch: 4 examples of 400 tokens, loss on the last 240.
constexpr int kExamples = 4, kTokens = 400, kAnswer = 240, kSteps = 4;
// Generation: prompts of 150 tokens, 128 new tokens each, no early stop.
constexpr int kPrompt = 150, kNew = 128;

void print(const char* what, double tokens, double seconds) {
  std::printf("{\"who\": \"tritonrl\", \"what\": \"%s\", \"tokens_per_s\": %.1f}\n", what, tokens / seconds);
  std::fflush(stdout);
}

std::vector<int32_t> random_tokens(int count, Rng rng) {
  std::vector<int32_t> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(100 + rng.below(40000)));
  return out;
}

void bench_sft(const Weights& weights) {
  auto adapter = LoraAdapter::create(weights, LoraConfig{}, Rng(1));
  AdamW optimizer(OptimizerConfig{}, adapter.parameters());
  PackedBatch batch;
  for (int e = 0; e < kExamples; ++e) {
    std::vector<float> loss(kTokens, 0);
    std::fill(loss.end() - kAnswer, loss.end(), 1.0f / (kAnswer * kExamples));
    batch.append(random_tokens(kTokens, Rng(static_cast<uint64_t>(e))), loss);
  }
  double start = 0;
  for (int step = 0; step <= kSteps; ++step) {
    if (step == 1) start = now_s();  // The first warms up.
    adapter.zero_gradients();
    forward_backward(weights, adapter, batch, Rng(static_cast<uint64_t>(step)));
    optimizer.step(adapter.gradients(), 1e-3);
  }
  print("sft", kSteps * kExamples * kTokens, now_s() - start);
}

void bench_generate(std::shared_ptr<const Weights> weights, int batch, const char* what) {
  Decoder decoder(weights, batch + 1, kPrompt + kNew + 1);
  std::vector<GenerateRequest> requests;
  for (int r = 0; r < batch; ++r)
    requests.push_back({random_tokens(kPrompt, Rng(static_cast<uint64_t>(r))), 1, Rng(7)});
  SamplingConfig sampling;
  sampling.max_new_tokens = kNew;
  double start = now_s();
  generate(decoder, requests, sampling, {});
  print(what, batch * kNew, now_s() - start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_model FOLDER [int8 | int8:GROUP] [sft|gen1|gen16|gen64 ...]\n");
    return 2;
  }
  try {
    LoadOptions options;
    options.device = open_device("auto");
    int named = argc - 2;
    for (int i = 2; i < argc; ++i) {
      if (std::strncmp(argv[i], "int8", 4) != 0) continue;
      options.int8 = true;
      if (argv[i][4] == ':') options.int8_group = std::atoll(argv[i] + 5);
      --named;
    }
    auto weights = load_weights(argv[1], options);
    auto asked = [&](const char* what) {
      for (int i = 2; i < argc; ++i) {
        if (std::strcmp(argv[i], what) == 0) return true;
      }
      return named == 0;
    };
    if (asked("sft")) bench_sft(*weights);
    if (options.int8) weights = merge(*weights, LoraAdapter::create(*weights, LoraConfig{}, Rng(1)));
    if (asked("gen1")) bench_generate(weights, 1, "gen1");
    if (asked("gen16")) bench_generate(weights, 16, "gen16");
    if (asked("gen64")) bench_generate(weights, 64, "gen64");
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_model: %s\n", e.what());
    return e.exit_code();
  }
}
