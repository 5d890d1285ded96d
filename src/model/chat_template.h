// SPDX-License-Identifier: Apache-2.0
// Chat messages as the text an instruct model was trained on. The ChatML of SmolLM2-Instruct and Qwen2.5-Instruct is
// known by heart:
//
//   <|im_start|>system\n...<|im_end|>\n<|im_start|>user\n...<|im_end|>\n<|im_start|>assistant\n
//
// (they differ only in the system message they put in front when there is none); other templates are run by Jinja
// (jinja_chat.h). The rendering must equal `apply_chat_template` of transformers (goldens).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/prompt.h"  // Message
#include "model/jinja_chat.h"
#include "model/tokenizer.h"

namespace tritonrl {

class ChatTemplate {
 public:
  // Reads chat_template.jinja, or else "chat_template" of tokenizer_config.json. Throws Error (usage) when there is
  // none or Jinja cannot run it.
  static ChatTemplate load(const std::filesystem::path& folder);
  // One of the two that are known; throws Error (usage) for another. `where` is for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& where);

  // Throws Error (usage) for no messages, or a role other than system, user and assistant.
  std::string render(const std::vector<Message>& messages, bool add_generation_prompt) const;

  // Ids of the rendered text, except that nothing inside a message can become a control token. Equal to
  // tokenizer.encode(render(...)) when no message spells one. Throws Error (usage) as render, and when the tokenizer
  // lacks <|im_start|> or <|im_end|> and the template is one of the two.
  std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                              bool add_generation_prompt) const;
  // An answer behind a prompt that waits for one, as the template renders it: what stands between them, the answer
  // (stripped where the template strips), and what ends it, up to a control token, which is the last id of
  // tokenizer.encode_parts(...). Throws Error (usage) when the template has no such token.
  std::vector<TextPart> answer(const Tokenizer& tokenizer, const std::string& text) const;

  const std::string& default_system() const { return default_system_; }  // Of the two.

 private:
  explicit ChatTemplate(std::string default_system) : default_system_(std::move(default_system)) {}
  std::vector<TextPart> parts(const std::vector<Message>& messages, bool add_generation_prompt) const;
  std::string default_system_;
  std::shared_ptr<const JinjaChat> jinja_;  // Null: one of the two.
};

}  // namespace tritonrl
