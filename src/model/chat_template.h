// SPDX-License-Identifier: Apache-2.0
// Chat messages as the text an instruct model was trained on: the ChatML of SmolLM2-Instruct and Qwen2.5-Instruct.
//
//   <|im_start|>system\n...<|im_end|>\n<|im_start|>user\n...<|im_end|>\n<|im_start|>assistant\n
//
// Both families differ only in the system message they put in front when there is none. We do not run Jinja: a template
// is recognised, or refused, and the rendering must equal `apply_chat_template` of transformers (goldens).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/prompt.h"      // Message
#include "model/tokenizer.h"  // Tokenizer

namespace tritonrl {

class ChatTemplate {
 public:
  // Reads chat_template.jinja, or else "chat_template" of tokenizer_config.json. Throws Error (usage) when there is
  // none or it is not one of the two.
  static ChatTemplate load(const std::filesystem::path& folder);
  // `where` is for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& where);

  // Throws Error (usage) for no messages, or a role other than system, user and assistant.
  std::string render(const std::vector<Message>& messages, bool add_generation_prompt) const;

  // Ids of the rendered text, except that nothing inside a message can become a control token. Equal to
  // tokenizer.encode(render(...)) when no message spells one. Throws Error (usage) as render, and when the tokenizer
  // lacks <|im_start|> or <|im_end|>.
  std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                              bool add_generation_prompt) const;

  const std::string& default_system() const { return default_system_; }

 private:
  explicit ChatTemplate(std::string default_system) : default_system_(std::move(default_system)) {}
  std::vector<Message> complete(const std::vector<Message>& messages) const;
  std::string default_system_;
};

}  // namespace tritonrl
