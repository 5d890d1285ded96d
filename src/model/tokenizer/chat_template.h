// SPDX-License-Identifier: Apache-2.0
// Chat messages as the text an instruct model was trained on: the model's own template, run by Jinja.
//
// A template is asked once for each sequence of roles, with marks in place of the messages; what it puts around the
// marks is then put around any messages of those roles. So a message can never become a control token, and Python
// starts once for the usual sequences of a template and once for each further one in a process's life. Whether it
// strips messages is found out the same way. A template that looks into messages beyond that (Qwen3 takes thoughts out
// of earlier answers) is not followed there. The rendering must equal `apply_chat_template` of transformers (goldens).
// Thread rule: const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/json.h"
#include "data/prompt.h"  // Message
#include "model/tokenizer/tokenizer.h"

namespace tritonrl {

class ChatTemplate {
 public:
  // Reads chat_template.jinja, or else "chat_template" of tokenizer_config.json. Throws Error (usage) when there is
  // none or Jinja cannot run it, (environment) when Python cannot be started.
  static ChatTemplate load(const std::filesystem::path& folder);
  // `tokens`: bos_token and the like by name, for the template. `where` is for messages. Throws as load.
  static ChatTemplate from_jinja(const std::string& jinja, const Json& tokens, const std::string& where);

  // Where the template takes no system message, that is put in front of the first user's. Throws Error (usage) for no
  // messages, a role other than system, user and assistant, or roles in an order that the template refuses.
  std::string render(const std::vector<Message>& messages, bool add_generation_prompt) const;

  // Ids of the rendered text, except that nothing inside a message can become a control token. Equal to
  // tokenizer.encode(render(...)) when no message spells one. Throws as render.
  std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                              bool add_generation_prompt) const;
  // An answer behind a prompt that waits for one, as the template renders it: what stands between them, the answer
  // (stripped where the template strips), and what ends it, up to a control token, which is the last id of
  // tokenizer.encode_parts(...). Throws Error (usage) when the template has no such token.
  std::vector<TextPart> answer(const Tokenizer& tokenizer, const std::string& text) const;

 private:
  class Frames;
  explicit ChatTemplate(std::shared_ptr<const Frames> frames) : frames_(std::move(frames)) {}
  std::vector<TextPart> parts(const std::vector<Message>& messages, bool add_generation_prompt) const;
  std::shared_ptr<const Frames> frames_;
};

}  // namespace tritonrl
