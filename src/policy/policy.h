// SPDX-License-Identifier: Apache-2.0
// Policy: a base model, its tokenizer and chat template, the prompt text, and the adapter that is being trained.
//
// Training uses base + adapter; generation uses a merged copy, renewed when the adapter has changed. With an 8-bit base
// (`base: int8`) the matrices stay as they are for both, and generation adds the adapter's part to each product.
// Thread rule: one thread at a time (it uses all cores itself); a snapshot may be used by another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "model/device.h"
#include "model/lora.h"
#include "policy/snapshot.h"

namespace tritonrl {

enum class BaseWeights { kBf16, kInt8 };
constexpr auto enum_names(BaseWeights) { return std::array{"bf16", "int8"}; }

struct PolicyConfig {
  std::string model = "models/smollm2-135m-instruct";
  std::string adapter;  // What training begins with; "" = an adapter that changes nothing.
  std::string device = "auto";
  ComputeType dtype = ComputeType::kAuto;
  BaseWeights base = BaseWeights::kBf16;
  int64_t int8_group = 0;
  int64_t max_prompt_tokens = 1024;
  int64_t slots =
      64;  // Sequences generated at a time. 64 keeps two cores busy at 2 MiB of cache each for the small model.

  template <class V>
  void for_each_field(V& v) {
    v("model", model, "Hugging Face folder");
    v("adapter", adapter,
      "what training begins with: a folder in PEFT's layout, or a whole model where lora.full is set; empty = a fresh "
      "one");
    v("dtype", dtype, "compute type of weights and activations");
    v("base", base, "the frozen matrices of the layers: bf16 = in the compute type, int8 = quantised while loading");
    v("int8_group", int8_group, "with base int8: inputs that share a scale, a multiple of 8; 0 = one scale a row");
    v("device", device, "auto, cpu, cuda or cuda:N");
    v("max_prompt_tokens", max_prompt_tokens, "longer prompts are refused");
    v("slots", slots, "sequences generated at a time");
  }
  void validate() const;
};

// A prompt with its answer, as token ids; loss is on answer tokens only.
struct EncodedExample {
  std::vector<int32_t> tokens;
  int64_t answer_begin = 0;
};

class Policy {
 public:
  // Loads everything. Throws Error.
  static Policy open(const PolicyConfig& config, PromptTemplate prompt);

  // The policy as it is now, to answer prompts with (policy/snapshot.h). Merges, on the calling thread.
  PolicySnapshot snapshot();

  std::vector<int32_t> encode_prompt(const Task& task) const { return text_->encode(text_->messages(task)); }
  // prompt + answer + end of turn.
  EncodedExample encode_example(const std::vector<int32_t>& prompt, const std::string& answer) const;

  const Weights& weights() const { return *weights_; }
  const Tokenizer& tokenizer() const { return text_->tokenizer; }
  const PolicyConfig& config() const { return config_; }

  // Attaches a fresh or loaded adapter; training changes it in place and then calls adapter_changed().
  void set_adapter(LoraAdapter adapter);
  void remove_adapter();
  bool has_adapter() const { return adapter_.has_value(); }
  LoraAdapter& adapter() { return *adapter_; }
  void adapter_changed() {
    merged_.reset();
    adapter_->changed();
  }

 private:
  Policy(PolicyConfig config, std::shared_ptr<const Weights> weights, std::shared_ptr<const PolicyText> text)
      : config_(std::move(config)), weights_(std::move(weights)), text_(std::move(text)) {}
  PolicyConfig config_;
  std::shared_ptr<const Weights> weights_, merged_;
  std::shared_ptr<const PolicyText> text_;
  std::optional<LoraAdapter> adapter_;
};

}  // namespace tritonrl
