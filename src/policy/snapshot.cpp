// SPDX-License-Identifier: Apache-2.0
#include "policy/snapshot.h"

#include <malloc.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/device.h"

namespace tritonrl {

std::vector<int32_t> PolicyText::encode(const std::vector<Message>& messages) const {
  return chat.encode(tokenizer, messages, true);
}

PolicySnapshot::PolicySnapshot(std::shared_ptr<const PolicyText> text, std::shared_ptr<const Weights> weights,
                               int64_t slots)
    : text_(std::move(text)), weights_(std::move(weights)), slots_(slots) {}

std::vector<Rng> PolicySnapshot::streams(std::span<const Task> tasks, const Rng& rng) {
  std::vector<Rng> streams;
  std::map<std::string, uint64_t> drawn;
  for (const Task& task : tasks) {
    Rng stream = rng.at(task.id);
    if (uint64_t again = drawn[task.id]++; again > 0) stream = stream.at("again").at(again);
    streams.push_back(stream);
  }
  return streams;
}

std::vector<std::vector<Rollout>> PolicySnapshot::roll_out(std::span<const Task> tasks, int64_t samples,
                                                           const SamplingConfig& sampling, const Rng& rng,
                                                           const GenerateProgress& progress, const OnAnswer& on_answer,
                                                           const KnownAnswer& known) const {
  std::vector<GenerateRequest> requests;
  std::vector<Rng> stream = streams(tasks, rng);
  for (const Task& task : tasks) {
    std::vector<int32_t> prompt = text_->encode(text_->messages(task));
    auto length = static_cast<int64_t>(prompt.size());
    if (length > text_->max_prompt_tokens) {
      throw usage_error(
          cat("the prompt has ", length, " tokens, more than policy.max_prompt_tokens = ", text_->max_prompt_tokens),
          "task " + task.id, "raise the limit or leave the task out");
    }
    GenerateRequest request{std::move(prompt), samples, stream[requests.size()], {}};
    for (int64_t s = 0; known && s < samples; ++s) {
      if (const Generated* answer = known(requests.size(), s)) request.known.emplace(s, *answer);
    }
    requests.push_back(std::move(request));
  }
  return answer(requests, sampling, progress, on_answer);
}

std::vector<std::vector<Rollout>> PolicySnapshot::answer(std::span<const GenerateRequest> requests,
                                                         const SamplingConfig& sampling,
                                                         const GenerateProgress& progress,
                                                         const OnAnswer& on_answer) const {
  if (requests.empty()) return {};
  int64_t longest = 0, wanted = 1;
  for (const GenerateRequest& request : requests) {
    longest = std::max(longest, static_cast<int64_t>(request.prompt.size()));
    wanted += request.samples - static_cast<int64_t>(request.known.size());
  }
  int64_t capacity = std::min(longest + sampling.max_new_tokens, weights_->rope.cos.size(0));
  if (longest >= capacity) throw usage_error("a prompt does not fit into the model's context", text_->model);
  std::vector<std::vector<Rollout>> rollouts;
  for (const GenerateRequest& request : requests) rollouts.emplace_back(static_cast<size_t>(request.samples));
  auto take = [&](size_t r, int64_t sample, Generated answer) -> const Rollout& {
    Rollout& rollout = rollouts[r][static_cast<size_t>(sample)];
    rollout = {std::move(answer.tokens), std::move(answer.log_probs), answer.finished, "", requests[r].prompt};
    rollout.text = text_->tokenizer.decode(rollout.tokens, true);
    rollout.trajectory = sample;
    return rollout;
  };
  {
    Decoder decoder(weights_, std::clamp<int64_t>(wanted, 2, slots_), capacity);
    auto answers = generate(decoder, requests, sampling, text_->stop, progress,
                            [&](size_t r, int64_t sample, const Generated& answer) {
                              const Rollout& rollout = take(r, sample, answer);
                              if (on_answer) on_answer(r, sample, rollout);
                            });
    for (size_t r = 0; r < answers.size(); ++r) {  // What was stopped early.
      for (size_t s = 0; s < answers[r].size(); ++s) {
        if (rollouts[r][s].tokens.empty()) take(r, static_cast<int64_t>(s), std::move(answers[r][s]));
      }
    }
  }
  // The cache was most of the memory; training needs the room for activations, and on a GPU the verifier's judges do.
  ::malloc_trim(0);
  give_back_memory(weights_->device);
  return rollouts;
}

}  // namespace tritonrl
