// SPDX-License-Identifier: Apache-2.0
#include "model/tokenizer/chat_template.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <map>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/process/subprocess.h"
#include "base/text.h"

namespace tritonrl {
namespace {

// Of the private use area, so in no template: "<number of the message>".
constexpr std::string_view kOpen = "\xee\x80\x80", kClose = "\xee\x80\x81";
constexpr const char* kAround = "\t\n";  // What a template that strips takes off.

// What Python's str.strip takes off, in UTF-8.
constexpr std::array<std::string_view, 29> kSpaces = {
    "\t",           "\n",           "\v",           "\f",           "\r",
    "\x1c",         "\x1d",         "\x1e",         "\x1f",         " ",
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

std::string stripped(std::string_view text, bool left, bool right) {
  auto at_front = [&] {
    return std::ranges::find_if(kSpaces, [&](std::string_view space) { return text.starts_with(space); });
  };
  auto at_back = [&] {
    return std::ranges::find_if(kSpaces, [&](std::string_view space) { return text.ends_with(space); });
  };
  for (auto it = at_front(); left && it != kSpaces.end(); it = at_front()) text.remove_prefix(it->size());
  for (auto it = at_back(); right && it != kSpaces.end(); it = at_back()) text.remove_suffix(it->size());
  return std::string(text);
}

std::string mark(size_t message) { return cat(kOpen, message, kClose); }

}  // namespace

// What a template puts around messages, by their roles.
class ChatTemplate::Frames {
 public:
  using Roles = std::vector<std::string>;

  struct Ask {
    Roles roles;
    bool add_generation_prompt;
    auto operator<=>(const Ask&) const = default;
  };

  struct Piece {
    std::string text;      // The template's own, or
    int64_t message = -1;  // that message.
    bool strip_left = false, strip_right = false;
  };

  struct Frame {
    std::vector<Piece> pieces;
    std::string refusal;  // "" or why there are none.
  };

  // Throws Error (usage) when Jinja cannot run the template for a user's message.
  Frames(std::string jinja, Json tokens, std::string where)
      : jinja_(std::move(jinja)), tokens_(std::move(tokens)), where_(std::move(where)) {
    Ask with_system{{"system", "user"}, true};  // Some refuse it, some say nothing and leave it out.
    learn({with_system,
           {{"user"}, true},
           {{"user", "assistant"}, false},
           {{"user", "assistant", "user"}, false},
           {{"user", "assistant", "user"}, true}});
    takes_system_ = known_.at(with_system).refusal.empty();
    pieces({"user"}, true);
  }

  bool takes_system() const { return takes_system_; }

  const std::vector<Piece>& pieces(const Roles& roles, bool add_generation_prompt) const {
    std::lock_guard lock(mutex_);
    Ask ask{roles, add_generation_prompt};
    if (!known_.contains(ask)) learn({ask});
    const Frame& frame = known_.at(ask);
    if (frame.refusal.empty()) return frame.pieces;
    throw usage_error(
        cat("the chat template does not do for the roles ", join(roles, ", "), ": ", valid_utf8(frame.refusal)), where_,
        "use an instruct model whose template takes system, user and assistant messages");
  }

 private:
  // What a template makes of marks (`bare`) and of marks between white space, as pieces.
  static Frame frame_of(size_t messages, const std::string& bare, const std::string& spaced) {
    Frame frame;
    std::vector<bool> there(messages, false);
    std::string_view rest = bare;
    while (true) {
      size_t open = rest.find(kOpen);
      if (std::string_view own = rest.substr(0, open); !own.empty()) frame.pieces.push_back({std::string(own)});
      if (open == std::string_view::npos) break;
      size_t close = rest.find(kClose, open), number = messages;
      if (close != std::string_view::npos) {
        std::from_chars(rest.data() + open + kOpen.size(), rest.data() + close, number);
      }
      if (number >= messages) return {{}, "it changes messages"};
      bool left = spaced.find(cat(kAround, mark(number))) == std::string::npos;
      bool right = spaced.find(cat(mark(number), kAround)) == std::string::npos;
      there[number] = true;
      frame.pieces.push_back({"", static_cast<int64_t>(number), left, right});
      rest.remove_prefix(close + kClose.size());
    }
    if (std::ranges::find(there, false) != there.end()) return {{}, "it leaves out messages"};
    return frame;
  }

  void learn(const std::vector<Ask>& asks) const {
    Json asked = Json::array();
    for (const Ask& ask : asks) {
      for (const char* around : {"", kAround}) {
        Json messages = Json::array();
        for (size_t i = 0; i < ask.roles.size(); ++i) {
          messages.push_back({{"role", ask.roles[i]}, {"content", cat(around, mark(i), around)}});
        }
        asked.push_back({{"messages", messages}, {"add_generation_prompt", ask.add_generation_prompt}});
      }
    }
    Subprocess python(python_command("render_chat.py"),
                      Json{{"template", jinja_}, {"tokens", tokens_}, {"asked", asked}}.dump());
    Json said = Json::parse(python.read_all(), nullptr, false);
    int end = python.wait();
    if (end == -SIGALRM) said = Json(asked.size(), {{"error", "it takes longer than ten seconds"}});
    if ((end != 0 && end != -SIGALRM) || !said.is_array() || said.size() != asked.size()) {
      throw environment_error("Python could not render a chat template", python_program(), "run tools/setup.sh");
    }
    for (size_t i = 0; i < asks.size(); ++i) {
      const Json &bare = said[2 * i], &spaced = said[2 * i + 1];
      const Json& problem = bare.contains("error") ? bare : spaced;
      known_[asks[i]] = problem.contains("error") ? Frame{{}, problem["error"].get<std::string>()}
                                                  : frame_of(asks[i].roles.size(), bare["text"].get<std::string>(),
                                                             spaced["text"].get<std::string>());
    }
  }

  std::string jinja_;
  Json tokens_;
  std::string where_;
  bool takes_system_ = true;
  mutable std::mutex mutex_;
  mutable std::map<Ask, Frame> known_;
};

ChatTemplate ChatTemplate::from_jinja(const std::string& jinja, const Json& tokens, const std::string& where) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Frames>> opened;  // Asked once in a process's life.
  std::lock_guard lock(mutex);
  std::shared_ptr<const Frames>& frames = opened[json_line({jinja, tokens, where})];
  if (!frames) frames = std::make_shared<const Frames>(jinja, tokens, where);
  return ChatTemplate(frames);
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "chat_template.jinja", config_path = folder / "tokenizer_config.json";
  Json config = std::filesystem::exists(config_path) ? read_json(config_path) : Json::object();
  Json found = config.is_object() && config.contains("chat_template") ? config["chat_template"] : Json();
  if (found.is_array()) {  // Several by name.
    for (const Json& entry : found) {
      if (entry.is_object() && entry.contains("template") && entry.value("name", Json()) == "default") {
        found = Json(entry["template"]);
        break;
      }
    }
  }
  if (std::filesystem::exists(path)) {
    found = read_file(path);
  } else {
    path = config_path;
  }
  if (!found.is_string()) {
    throw usage_error("there is no chat template", path.string(), "use an instruct model, not a base model");
  }
  Json tokens = Json::object();  // Text, or an added token with its text as "content".
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    Json token = config.is_object() ? config.value(name, Json()) : Json();
    if (token.is_object()) token = token.value("content", Json());
    tokens[name] = token.is_string() ? token : Json("");
  }
  return from_jinja(found.get<std::string>(), tokens, path.string());
}

std::vector<TextPart> ChatTemplate::parts(const std::vector<Message>& messages, bool add_generation_prompt) const {
  if (messages.empty()) throw usage_error("a chat without messages", "", "give at least a user message");
  std::vector<std::string> roles, contents;
  for (const Message& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      throw usage_error(cat("unknown role \"", valid_utf8(message.role), "\""), "", "roles: system, user, assistant");
    }
    roles.push_back(message.role);
    contents.push_back(message.content);
  }
  if (!frames_->takes_system() && roles.size() > 1 && roles[0] == "system" && roles[1] == "user") {
    contents[1] = cat(contents[0], "\n\n", contents[1]);
    roles.erase(roles.begin());
    contents.erase(contents.begin());
  }
  std::vector<TextPart> out;
  for (const Frames::Piece& piece : frames_->pieces(roles, add_generation_prompt)) {
    if (piece.message < 0) {
      out.push_back({piece.text, true});
    } else {
      const std::string& content = contents[static_cast<size_t>(piece.message)];
      out.push_back({stripped(content, piece.strip_left, piece.strip_right), false});
    }
  }
  return out;
}

std::string ChatTemplate::render(const std::vector<Message>& messages, bool add_generation_prompt) const {
  std::string out;
  for (const TextPart& part : parts(messages, add_generation_prompt)) out += part.text;
  return out;
}

std::vector<int32_t> ChatTemplate::encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                          bool add_generation_prompt) const {
  return tokenizer.encode_parts(parts(messages, add_generation_prompt));
}

std::vector<TextPart> ChatTemplate::answer(const Tokenizer& tokenizer, const std::string& text) const {
  using Piece = Frames::Piece;
  auto is_answer = [](const Piece& piece) { return piece.message == 1; };
  auto add = [](std::string* to, const Piece& piece) { *to += piece.message < 0 ? piece.text : cat(kOpen, kClose); };
  std::string prompt, before, behind;
  for (const Piece& piece : frames_->pieces({"user"}, true)) add(&prompt, piece);
  const auto& last = frames_->pieces({"user", "assistant"}, false);
  auto at = std::ranges::find_if(last, is_answer);
  for (auto piece = last.begin(); piece != at; ++piece) add(&before, *piece);
  before = before.starts_with(prompt) ? before.substr(prompt.size()) : "";
  std::string message = stripped(text, at->strip_left, at->strip_right);
  if (++at != last.end()) behind = at->text;
  if (behind.empty()) {  // Some end an answer only when there is more to come.
    const auto& going_on = frames_->pieces({"user", "assistant", "user"}, false);
    auto next = std::ranges::find_if(going_on, is_answer) + 1;
    if (next != going_on.end()) behind = next->text;
  }
  std::vector<int32_t> all = tokenizer.encode(behind);
  for (size_t length = 1; length <= behind.size(); ++length) {  // Up to where the first control token is whole.
    std::string end = behind.substr(0, length);
    std::vector<int32_t> ids = tokenizer.encode(end);
    if (ids.empty() || !tokenizer.is_special(ids.back())) continue;
    if (ids.size() > all.size() || !std::equal(ids.begin(), ids.end(), all.begin()))
      continue;  // A longer one begins so.
    return {{before, true}, {message, false}, {end, true}};
  }
  throw usage_error(cat("the chat template puts no control token behind an answer, but \"", valid_utf8(behind), "\""),
                    "", "an answer must end with a token of its own; use another model or template");
}

}  // namespace tritonrl
