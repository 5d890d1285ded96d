// SPDX-License-Identifier: Apache-2.0
// PolicySnapshot: a policy as it was when the snapshot was taken. It answers prompts, always from the same weights,
// also while the policy itself is being trained.
//
// The weights are a merged copy, or the policy's own where nothing is merged into them; both live as long as a snapshot
// does. Taking one is cheap while the adapter has not changed since the last.
// Thread rule: one thread at a time, which may be another than the one that trains. On a GPU that thread must have a
// stream of its own (model/device.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/prompt.h"
#include "model/tokenizer/chat_template.h"
#include "model/tokenizer/tokenizer.h"
#include "policy/generate.h"
#include "policy/rollout.h"

namespace tritonrl {

// Between tasks, conversations and tokens. Immutable.
struct PolicyText {
  std::string model;  // The folder, for messages.
  Tokenizer tokenizer;
  ChatTemplate chat;
  PromptTemplate prompt;
  StopTokens stop;
  int64_t max_prompt_tokens = 0;

  std::vector<Message> messages(const Task& task) const { return prompt.render(task); }
  // A conversation that waits for the assistant.
  std::vector<int32_t> encode(const std::vector<Message>& messages) const;
};

// Called on the sampling thread as soon as an answer is complete, with the position of its task or request, and of the
// sample in it.
using OnAnswer = std::function<void(size_t request, int64_t sample, const Rollout& rollout)>;
// An answer that was drawn before and is to be taken for that sample; null = none was.
using KnownAnswer = std::function<const Generated*(size_t request, int64_t sample)>;

class PolicySnapshot {
 public:
  // `slots` sequences are generated at a time.
  PolicySnapshot(std::shared_ptr<const PolicyText> text, std::shared_ptr<const Weights> weights, int64_t slots);

  // Samples `samples` answers to each task, rng.at(task id) being each task's stream, and another one of that where a
  // task comes again. Throws Error (usage) for a prompt that is too long.
  std::vector<std::vector<Rollout>> roll_out(std::span<const Task> tasks, int64_t samples,
                                             const SamplingConfig& sampling, const Rng& rng,
                                             const GenerateProgress& progress = {}, const OnAnswer& on_answer = {},
                                             const KnownAnswer& known = {}) const;

  // One answer or more to each prompt, as the requests say, whatever wrote it. Throws Error (usage) for a prompt that
  // does not fit into the model's context.
  std::vector<std::vector<Rollout>> answer(std::span<const GenerateRequest> requests, const SamplingConfig& sampling,
                                           const GenerateProgress& progress = {}, const OnAnswer& on_answer = {}) const;
  // The stream of each task's draws in roll_out.
  static std::vector<Rng> streams(std::span<const Task> tasks, const Rng& rng);

  const PolicyText& text() const { return *text_; }
  const Weights& weights() const { return *weights_; }

 private:
  std::shared_ptr<const PolicyText> text_;
  std::shared_ptr<const Weights> weights_;
  int64_t slots_;
};

}  // namespace tritonrl
