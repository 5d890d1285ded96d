// SPDX-License-Identifier: Apache-2.0
// JinjaChat: a model's own chat template, run by Jinja, for those that chat_template.h does not know by heart.
//
// A template is asked once for each sequence of roles, with marks in place of the messages; what it puts around the
// marks is then put around any messages of those roles. So a message can never become a control token, and Python runs
// a few times in a process's life. Whether it strips messages is found out the same way. A template that looks into
// messages beyond that (Qwen3 takes thoughts out of earlier answers) is not followed there.
// Thread rule: const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/tokenizer.h"

namespace tritonrl {

class JinjaChat {
 public:
  // `tokens`: bos_token and the like by name, for the template. `where` is for messages. Throws Error (usage) when
  // Jinja cannot run it for a user's message, Error (environment) when Python cannot be started.
  JinjaChat(std::string jinja, Json tokens, std::string where);

  // The conversation, `contents` in their places. Where the template takes no system message, it is put in front of the
  // first user's. Throws as the constructor.
  std::vector<TextPart> parts(const std::vector<std::string>& roles, const std::vector<std::string>& contents,
                              bool add_generation_prompt) const;
  // An assistant's message as the template renders it where it was asked for one: what it puts between the prompt and
  // the message, and behind that.
  struct Answer {
    std::string before, behind;
    bool strip_left = false, strip_right = false;  // Whether it strips the message.
  };
  Answer answer() const;
  static std::string stripped(const std::string& message, bool left, bool right);  // As Python's str.strip does.

 private:
  struct Piece {
    std::string text;      // The template's own, or
    int64_t message = -1;  // that message
    bool strip_left = false, strip_right = false;
  };
  const std::vector<Piece>& pieces(const std::vector<std::string>& roles, bool add_generation_prompt) const;
  Json ask(const std::vector<std::string>& roles, bool add_generation_prompt) const;

  std::string jinja_, where_;
  Json tokens_;
  bool takes_system_ = true;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<Piece>> known_;  // By roles and whether the assistant is to go on.
};

}  // namespace tritonrl
