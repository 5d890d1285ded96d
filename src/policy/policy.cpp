// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "model/device.h"

namespace tritonrl {

void PolicyConfig::validate() const {
  if (slots < 2) throw usage_error("slots must be at least 2");
  if (max_prompt_tokens < 1) throw usage_error("max_prompt_tokens must be positive");
  if (int8_group < 0 || int8_group % 8 != 0) throw usage_error("int8_group must be 0 or a positive multiple of 8");
  if (int8_group != 0 && base != "int8") throw usage_error("int8_group is for base: int8");
}

Policy::Policy(PolicyConfig config, std::shared_ptr<const Weights> weights, Tokenizer tokenizer, ChatTemplate chat,
               PromptTemplate prompt)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      prompt_(std::move(prompt)) {
  stop_.vocab_limit = tokenizer_.vocab_size();
  for (int64_t id : weights_->config.eos_ids) stop_.ids.push_back(id);
  for (int32_t id : tokenizer_.eos_ids()) stop_.ids.push_back(id);
  if (auto end = tokenizer_.token_to_id("<|im_end|>")) stop_.ids.push_back(*end);
}

Policy Policy::open(const PolicyConfig& config, PromptTemplate prompt) {
  config.validate();
  if (!std::filesystem::is_directory(config.model)) {
    throw usage_error("no such model folder", config.model, "run ./quickstart.sh or `tritonrl model import`");
  }
  LoadOptions options;
  options.device = open_device(config.device);
  options.dtype = compute_dtype(config.dtype);
  options.int8 = config.base == "int8";
  options.int8_group = config.int8_group;
  auto tokenizer = Tokenizer::load(config.model);
  auto chat = ChatTemplate::load(config.model);
  auto weights = load_weights(config.model, options);
  if (tokenizer.vocab_size() > weights->config.vocab_size) {
    throw usage_error(
        cat("the tokenizer has ", tokenizer.vocab_size(), " tokens, the model only ", weights->config.vocab_size),
        config.model);
  }
  return Policy(config, std::move(weights), std::move(tokenizer), std::move(chat), std::move(prompt));
}

std::vector<int32_t> Policy::encode(const std::vector<Message>& messages) const {
  return chat_.encode(tokenizer_, messages, true);
}

EncodedExample Policy::encode_example(const std::vector<int32_t>& prompt, const std::string& answer) const {
  EncodedExample out{prompt, static_cast<int64_t>(prompt.size())};
  auto tokens = tokenizer_.encode_plain(answer);
  out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
  auto end = tokenizer_.token_to_id("<|im_end|>");
  if (!end) throw usage_error("the tokenizer has no <|im_end|>", config_.model);
  out.tokens.push_back(*end);
  return out;
}

void Policy::set_adapter(LoraAdapter adapter) {
  adapter_ = std::move(adapter);
  merged_.reset();
}

void Policy::remove_adapter() {
  adapter_.reset();
  merged_.reset();
}

std::vector<Rng> Policy::streams(std::span<const Task> tasks, const Rng& rng) {
  std::vector<Rng> streams;
  std::map<std::string, uint64_t> drawn;
  for (const Task& task : tasks) {
    Rng stream = rng.at(task.id);
    if (uint64_t again = drawn[task.id]++; again > 0) stream = stream.at("again").at(again);
    streams.push_back(stream);
  }
  return streams;
}

std::vector<Group> Policy::roll_out(std::span<const Task> tasks, int64_t samples, const SamplingConfig& sampling,
                                    const Rng& rng, const GenerateProgress& progress, const OnAnswer& on_answer) {
  std::vector<Group> groups;
  std::vector<GenerateRequest> requests;
  std::vector<Rng> stream = streams(tasks, rng);
  for (const Task& task : tasks) {
    Group group{task, encode_prompt(task), {}};
    auto length = static_cast<int64_t>(group.prompt.size());
    if (length > config_.max_prompt_tokens) {
      throw usage_error(
          cat("the prompt has ", length, " tokens, more than policy.max_prompt_tokens = ", config_.max_prompt_tokens),
          "task " + task.id, "raise the limit or leave the task out");
    }
    requests.push_back({group.prompt, samples, stream[requests.size()]});
    groups.push_back(std::move(group));
  }
  auto answers = answer(requests, sampling, progress, on_answer);
  for (size_t g = 0; g < groups.size(); ++g) groups[g].rollouts = std::move(answers[g]);
  return groups;
}

std::vector<std::vector<Rollout>> Policy::answer(std::span<const GenerateRequest> requests,
                                                 const SamplingConfig& sampling, const GenerateProgress& progress,
                                                 const OnAnswer& on_answer) {
  if (requests.empty()) return {};
  int64_t longest = 0, wanted = 1;
  for (const GenerateRequest& request : requests) {
    longest = std::max(longest, static_cast<int64_t>(request.prompt.size()));
    wanted += request.samples;
  }
  int64_t capacity = std::min(longest + sampling.max_new_tokens, weights_->rope.cos.size(0));
  if (longest >= capacity) throw usage_error("a prompt does not fit into the model's context", config_.model);
  if (!merged_) merged_ = adapter_ ? merge(*weights_, *adapter_) : weights_;
  std::vector<std::vector<Rollout>> rollouts;
  for (const GenerateRequest& request : requests) rollouts.emplace_back(static_cast<size_t>(request.samples));
  auto take = [&](size_t r, int64_t sample, Generated answer) -> const Rollout& {
    Rollout& rollout = rollouts[r][static_cast<size_t>(sample)];
    rollout = {std::move(answer.tokens), std::move(answer.log_probs), answer.finished, ""};
    rollout.text = tokenizer_.decode(rollout.tokens, true);
    rollout.trajectory = sample;
    return rollout;
  };
  {
    Decoder decoder(merged_, std::clamp<int64_t>(wanted, 2, config_.slots), capacity);
    auto answers =
        generate(decoder, requests, sampling, stop_, progress, [&](size_t r, int64_t sample, const Generated& answer) {
          const Rollout& rollout = take(r, sample, answer);
          if (on_answer) on_answer(r, sample, rollout);
        });
    for (size_t r = 0; r < answers.size(); ++r) {  // What was stopped early.
      for (size_t s = 0; s < answers[r].size(); ++s) {
        if (rollouts[r][s].tokens.empty()) take(r, static_cast<int64_t>(s), std::move(answers[r][s]));
      }
    }
  }
  ::malloc_trim(0);  // The cache was most of the heap; training needs the room for activations.
  return rollouts;
}

}  // namespace tritonrl
