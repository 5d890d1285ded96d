// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <filesystem>

#include "base/error.h"
#include "model/device.h"

namespace tritonrl {

void PolicyConfig::validate() const {
  if (slots < 2) throw usage_error("slots must be at least 2");
  if (max_prompt_tokens < 1) throw usage_error("max_prompt_tokens must be positive");
  if (int8_group < 0 || int8_group % 8 != 0) throw usage_error("int8_group must be 0 or a positive multiple of 8");
  if (int8_group != 0 && base != BaseWeights::kInt8) throw usage_error("int8_group is for base: int8");
}

Policy Policy::open(const PolicyConfig& config, PromptTemplate prompt) {
  config.validate();
  if (!std::filesystem::is_directory(config.model)) {
    throw usage_error("no such model folder", config.model, "run ./quickstart.sh or `tritonrl model import`");
  }
  LoadOptions options;
  options.device = open_device(config.device);
  options.dtype = compute_dtype(config.dtype);
  options.int8 = config.base == BaseWeights::kInt8;
  options.int8_group = config.int8_group;
  auto text = std::make_shared<PolicyText>(
      PolicyText{config.model, Tokenizer::load(config.model), ChatTemplate::load(config.model), std::move(prompt), {}});
  options.vocab_limit = text->tokenizer.vocab_size();
  auto weights = load_weights(config.model, options);
  if (text->tokenizer.vocab_size() > weights->config.vocab_size) {
    throw usage_error(
        cat("the tokenizer has ", text->tokenizer.vocab_size(), " tokens, the model only ", weights->config.vocab_size),
        config.model);
  }
  text->max_prompt_tokens = config.max_prompt_tokens;
  text->stop.vocab_limit = text->tokenizer.vocab_size();
  for (int64_t id : weights->config.eos_ids) text->stop.ids.push_back(id);
  for (int32_t id : text->tokenizer.eos_ids()) text->stop.ids.push_back(id);
  text->stop.ids.push_back(text->tokenizer.encode_parts(text->chat.answer(text->tokenizer, "")).back());
  return Policy(config, std::move(weights), std::move(text));
}

EncodedExample Policy::encode_example(const std::vector<int32_t>& prompt, const std::string& answer) const {
  EncodedExample out{prompt, static_cast<int64_t>(prompt.size())};
  auto tokens = tokenizer().encode_parts(text_->chat.answer(tokenizer(), answer), prompt);
  out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
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

PolicySnapshot Policy::snapshot() {
  if (!merged_) merged_ = adapter_ ? merge(*weights_, *adapter_) : weights_;
  return PolicySnapshot(text_, merged_, config_.slots);
}

}  // namespace tritonrl
