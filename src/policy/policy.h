// SPDX-License-Identifier: Apache-2.0
// Policy: a base model, its tokenizer and chat template, the prompt text, and the adapter that is being trained.
//
// Training uses base + adapter; generation uses a merged copy, renewed when the adapter has changed. With an 8-bit base
// (`base: int8`) the matrices stay as they are for both, and generation adds the adapter's part to each product.
// Thread rule: one thread at a time (it uses all cores itself).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/prompt.h"
#include "model/chat_template.h"
#include "model/lora.h"
#include "model/tokenizer.h"
#include "policy/generate.h"
#include "policy/rollout.h"

namespace tritonrl {

struct PolicyConfig {
  std::string model = "models/smollm2-135m-instruct";
  std::string device = "auto";
  std::string dtype = "auto";
  std::string base = "bf16";
  int64_t int8_group = 0;
  int64_t max_prompt_tokens = 1024;
  int64_t slots =
      64;  // Sequences generated at a time. 64 keeps two cores busy at 2 MiB of cache each for the small model.

  template <class V>
  void for_each_field(V& v) {
    v("model", model, "Hugging Face folder");
    v.choice("dtype", dtype, {"auto", "bf16", "fp32"}, "compute type of weights and activations");
    v.choice("base", base, {"bf16", "int8"},
             "the frozen matrices of the layers: bf16 = in the compute type, int8 = quantised while loading");
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

// Called on the sampling thread as soon as an answer is complete, with the position of its task or request, and of the
// sample in it.
using OnAnswer = std::function<void(size_t request, int64_t sample, const Rollout& rollout)>;

class Policy {
 public:
  // Loads everything. Throws Error.
  static Policy open(const PolicyConfig& config, PromptTemplate prompt);

  // Samples `samples` answers to each task, rng.at(task id) being each task's stream, and another
  // one of that where a task comes again. Throws Error (usage) for a prompt
  // that is too long.
  std::vector<Group> roll_out(std::span<const Task> tasks, int64_t samples, const SamplingConfig& sampling,
                              const Rng& rng, const GenerateProgress& progress = {}, const OnAnswer& on_answer = {});

  // One answer or more to each prompt, as the requests say, whatever wrote it. Throws Error (usage) for a prompt that
  // does not fit into the model's context.
  std::vector<std::vector<Rollout>> answer(std::span<const GenerateRequest> requests, const SamplingConfig& sampling,
                                           const GenerateProgress& progress = {}, const OnAnswer& on_answer = {});
  // The stream of each task's draws in roll_out.
  static std::vector<Rng> streams(std::span<const Task> tasks, const Rng& rng);

  std::vector<Message> messages(const Task& task) const { return prompt_.render(task); }
  // A conversation that waits for the assistant.
  std::vector<int32_t> encode(const std::vector<Message>& messages) const;
  std::vector<int32_t> encode_prompt(const Task& task) const { return encode(messages(task)); }
  // prompt + answer + end of turn.
  EncodedExample encode_example(const std::vector<int32_t>& prompt, const std::string& answer) const;

  const Weights& weights() const { return *weights_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const PolicyConfig& config() const { return config_; }

  // Attaches a fresh or loaded adapter; training changes it in place and then calls adapter_changed().
  void set_adapter(LoraAdapter adapter);
  void remove_adapter();
  bool has_adapter() const { return adapter_.has_value(); }
  LoraAdapter& adapter() { return *adapter_; }
  void adapter_changed() { merged_.reset(); }

 private:
  Policy(PolicyConfig config, std::shared_ptr<const Weights> weights, Tokenizer tokenizer, ChatTemplate chat,
         PromptTemplate prompt);
  PolicyConfig config_;
  std::shared_ptr<const Weights> weights_, merged_;
  Tokenizer tokenizer_;
  ChatTemplate chat_;
  PromptTemplate prompt_;
  std::optional<LoraAdapter> adapter_;
  StopTokens stop_;
};

}  // namespace tritonrl
