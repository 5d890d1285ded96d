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

std::vector<int32_t> Policy::encode_prompt(const Task& task) const {
  return chat_.encode(tokenizer_, prompt_.render(task), true);
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

std::vector<Group> Policy::roll_out(std::span<const Task> tasks, int64_t samples, const SamplingConfig& sampling,
                                    const Rng& rng, const GenerateProgress& progress) {
  std::vector<Group> groups;
  std::vector<GenerateRequest> requests;
  std::map<std::string, uint64_t> drawn;
  int64_t longest = 0;
  for (const Task& task : tasks) {
    Group group{task, encode_prompt(task), {}};
    auto length = static_cast<int64_t>(group.prompt.size());
    if (length > config_.max_prompt_tokens) {
      throw usage_error(
          cat("the prompt has ", length, " tokens, more than policy.max_prompt_tokens = ", config_.max_prompt_tokens),
          "task " + task.id, "raise the limit or leave the task out");
    }
    longest = std::max(longest, length);
    Rng stream = rng.at(task.id);
    if (uint64_t again = drawn[task.id]++; again > 0) stream = stream.at("again").at(again);
    requests.push_back({group.prompt, samples, stream});
    groups.push_back(std::move(group));
  }
  if (groups.empty()) return groups;
  int64_t capacity = std::min(longest + sampling.max_new_tokens, weights_->rope.cos.size(0));
  if (longest >= capacity) throw usage_error("a prompt does not fit into the model's context", config_.model);
  if (!merged_) merged_ = adapter_ ? merge(*weights_, *adapter_) : weights_;
  int64_t wanted = static_cast<int64_t>(tasks.size()) * samples + 1;
  std::vector<std::vector<Generated>> answers;
  {
    Decoder decoder(merged_, std::clamp<int64_t>(wanted, 2, config_.slots), capacity);
    answers = generate(decoder, requests, sampling, stop_, progress);
  }
  ::malloc_trim(0);  // The cache was most of the heap; training needs the room for activations.
  for (size_t g = 0; g < groups.size(); ++g) {
    for (auto& answer : answers[g]) {
      Rollout rollout{std::move(answer.tokens), std::move(answer.log_probs), answer.finished, ""};
      rollout.text = tokenizer_.decode(rollout.tokens, true);
      groups[g].rollouts.push_back(std::move(rollout));
    }
  }
  return groups;
}

}  // namespace tritonrl
