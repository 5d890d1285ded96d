// SPDX-License-Identifier: Apache-2.0
// Tokens per second of LoRA training steps and of generation, as JSON lines: bench_model FOLDER [int8 | int8:GROUP]
// [recompute] [sft|sft2048|sft8192|gen1|gen16|gen64|gen512 ...]. With int8 the base is 8-bit, and generation has an
// adapter beside it; with recompute, activations are not kept for the gradient.
// bench/compare_transformers.sh runs it beside transformers + PEFT on the same weights, sizes and machine.
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "model/device.h"
#include "model/train_graph.h"
#include "policy/generate.h"
#include "train/optimizer.h"

namespace {

using namespace tritonrl;

// A batch for SFT; every token from the prompt's end on carries loss.
struct Sft {
  const char* what;
  int examples, tokens, answer, steps;
};
constexpr Sft kSmall = {"sft", 4, 400, 240, 4};  // The small model's: prompts of 160 tokens, answers of 240.
constexpr Sft kLong = {"sft2048", 2, 2048, 2047, 4};
constexpr Sft kLongest = {"sft8192", 1, 8192, 8191, 4};
// Generation: prompts of 150 tokens, 128 new tokens each, no early stop.
constexpr int kPrompt = 150, kNew = 128;

// GPU memory that held tensors at most since the last call, in GB; 0 on the CPU.
double peak_memory(at::Device device) {
  if (device.is_cpu()) return 0;
  auto* allocator = at::getDeviceAllocator(device.type());
  auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  double peak = static_cast<double>(allocator->getDeviceStats(device.index()).allocated_bytes[all].peak) * 1e-9;
  allocator->resetPeakStats(device.index());
  return peak;
}

void print(const char* what, double tokens, double seconds, const Weights& weights) {
  std::printf("{\"who\": \"tritonrl\", \"what\": \"%s\", \"tokens_per_s\": %.1f, \"peak_gb\": %.2f}\n", what,
              tokens / seconds, peak_memory(weights.device));
  std::fflush(stdout);
}

std::vector<int32_t> random_tokens(int count, Rng rng) {
  std::vector<int32_t> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(100 + rng.below(40000)));
  return out;
}

void bench_sft(const Weights& weights, const Sft& size, Keep keep) {
  auto adapter = LoraAdapter::create(weights, LoraConfig{}, Rng(1));
  AdamW optimizer(OptimizerConfig{}, adapter.parameters());
  PackedBatch batch;
  for (int e = 0; e < size.examples; ++e) {
    std::vector<float> loss(static_cast<size_t>(size.tokens), 0);
    std::fill(loss.end() - size.answer, loss.end(), 1.0f / static_cast<float>(size.answer * size.examples));
    batch.append(random_tokens(size.tokens, Rng(static_cast<uint64_t>(e))), loss);
  }
  double start = 0;
  for (int step = 0; step <= size.steps; ++step) {
    if (step == 1) start = now_s();  // The first warms up.
    adapter.zero_gradients();
    forward_backward(weights, adapter, batch, Rng(static_cast<uint64_t>(step)), keep);
    optimizer.step(adapter.gradients(), 1e-3);
  }
  double tokens = static_cast<double>(size.steps) * size.examples * size.tokens;
  print(size.what, tokens, now_s() - start, weights);
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
  print(what, batch * kNew, now_s() - start, *weights);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: bench_model FOLDER [int8 | int8:GROUP] [recompute] [sft|sft2048|sft8192|gen1|gen16|gen64|gen512 "
        "...]\n");
    return 2;
  }
  try {
    LoadOptions options;
    options.device = open_device("auto");
    int named = argc - 2;
    Keep keep = Keep::kActivations;
    for (int i = 2; i < argc; ++i) {
      if (std::strcmp(argv[i], "recompute") == 0) {
        keep = Keep::kInputs;
        --named;
      }
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
      const char* large[] = {"sft2048", "sft8192", "gen512"};
      return named == 0 && std::none_of(std::begin(large), std::end(large),
                                        [&](const char* name) { return std::strcmp(what, name) == 0; });
    };
    if (asked("sft")) bench_sft(*weights, kSmall, keep);
    if (asked("sft2048")) bench_sft(*weights, kLong, keep);
    if (asked("sft8192")) bench_sft(*weights, kLongest, keep);
    if (options.int8) weights = merge(*weights, LoraAdapter::create(*weights, LoraConfig{}, Rng(1)));
    if (asked("gen1")) bench_generate(weights, 1, "gen1");
    if (asked("gen16")) bench_generate(weights, 16, "gen16");
    if (asked("gen64")) bench_generate(weights, 64, "gen64");
    if (asked("gen512")) bench_generate(weights, 512, "gen512");
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_model: %s\n", e.what());
    return e.exit_code();
  }
}
