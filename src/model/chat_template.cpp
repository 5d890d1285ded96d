// SPDX-License-Identifier: Apache-2.0
#include "model/chat_template.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";

// What a template must say. \1 stands for the default system message, \2 for any text.
constexpr const char* kSmolLm2 =
    "{% for message in messages %}"
    "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n\1<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
// Without tools and tool calls Qwen2.5's does the same. Its branches for those come first and last.
constexpr const char* kQwen25 =
    "{%- if tools %}\2{%- else %}"
    "{%- if messages[0]['role'] == 'system' %}"
    "{{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}"
    "{%- else %}{{- '<|im_start|>system\n\1<|im_end|>\n' }}{%- endif %}{%- endif %}"
    "{%- for message in messages %}{%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first)"
    " or (message.role == \"assistant\" and not message.tool_calls) %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}"
    "{%- elif message.role == \"assistant\" %}\2{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}";

// Leaves out the white space that Jinja ignores: between the words of a block and before "{%-" or "{{-". What stands in
// quotes or between blocks stays, because it is output.
std::string canonical(std::string_view jinja) {
  std::string out;
  char quote = 0;
  bool in_block = false;
  for (size_t i = 0; i < jinja.size(); ++i) {
    char c = jinja[i];
    std::string_view two = jinja.substr(i, 2);
    if (quote != 0) {
      if (two == "\\n") {
        out += '\n';
        ++i;
        continue;
      }
      out += c;
      if (c == '\\' && i + 1 < jinja.size()) out += jinja[++i];
      if (c == quote) quote = 0;
    } else if (in_block) {
      if (c == '\'' || c == '"') quote = c;
      if (!std::isspace(static_cast<unsigned char>(c))) out += c;
      if (two == "%}" || two == "}}") {
        out += jinja[++i];
        in_block = false;
      }
    } else if (two == "{%" || two == "{{") {
      if (jinja.substr(i + 2, 1) == "-") {
        while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back()))) out.pop_back();
      }
      out += two;
      ++i;
      in_block = true;
    } else {
      out += c;
    }
  }
  while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back()))) out.pop_back();  // Jinja drops it, too.
  return out;
}

// The default system message, if `text` says what `pattern` does (both canonical).
std::optional<std::string> default_system_in(std::string_view text, std::string_view pattern) {
  std::string system;
  while (true) {
    size_t length = pattern.find_first_of("\1\2");
    if (!text.starts_with(pattern.substr(0, length))) return std::nullopt;
    if (length == std::string_view::npos) return text == pattern ? std::optional(system) : std::nullopt;
    bool is_system = pattern[length] == '\1';
    text.remove_prefix(length);
    pattern.remove_prefix(length + 1);
    std::string_view next = pattern.substr(0, pattern.find_first_of("\1\2"));
    size_t skipped = text.find(next);
    if (skipped == std::string_view::npos) return std::nullopt;
    if (is_system) system = text.substr(0, skipped);
    if (is_system && system.find_first_of("'{}\\") != std::string::npos) return std::nullopt;  // Code, not a message.
    text.remove_prefix(skipped);
  }
}

// The default system message of a template that is one of the two.
std::optional<std::string> known_by_heart(const std::string& jinja) {
  std::string text = canonical(jinja);
  auto system = default_system_in(text, canonical(kSmolLm2));
  return system ? system : default_system_in(text, canonical(kQwen25));
}

}  // namespace

ChatTemplate ChatTemplate::recognise(const std::string& jinja, const std::string& where) {
  if (auto system = known_by_heart(jinja)) return ChatTemplate(*system);
  throw usage_error("unknown chat template", where,
                    "known by heart are those of SmolLM2-Instruct and Qwen2.5-Instruct");
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
  auto jinja = found.get<std::string>();
  if (auto known = known_by_heart(jinja)) return ChatTemplate(*known);
  Json tokens = Json::object();  // Text, or an added token with its text as "content".
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    Json token = config.is_object() ? config.value(name, Json()) : Json();
    if (token.is_object()) token = token.value("content", Json());
    tokens[name] = token.is_string() ? token : Json("");
  }
  ChatTemplate chat("");
  chat.jinja_ = std::make_shared<const JinjaChat>(std::move(jinja), std::move(tokens), path.string());
  return chat;
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
  if (jinja_) return jinja_->parts(roles, contents, add_generation_prompt);
  std::vector<TextPart> out;
  auto add = [&](const std::string& role, const std::string& content) {
    out.push_back({cat(kStart, role, "\n"), true});
    out.push_back({content, false});
    out.push_back({cat(kEnd, "\n"), true});
  };
  if (roles[0] != "system") add("system", default_system_);
  for (size_t i = 0; i < roles.size(); ++i) add(roles[i], contents[i]);
  if (add_generation_prompt) out.push_back({cat(kStart, "assistant\n"), true});
  return out;
}

std::string ChatTemplate::render(const std::vector<Message>& messages, bool add_generation_prompt) const {
  std::string out;
  for (const TextPart& part : parts(messages, add_generation_prompt)) out += part.text;
  return out;
}

std::vector<int32_t> ChatTemplate::encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                          bool add_generation_prompt) const {
  if (!jinja_ && (!tokenizer.token_to_id(kStart) || !tokenizer.token_to_id(kEnd))) {
    throw usage_error("the tokenizer has no <|im_start|> or no <|im_end|>", "", "use its own template");
  }
  return tokenizer.encode_parts(parts(messages, add_generation_prompt));
}

std::vector<TextPart> ChatTemplate::answer(const Tokenizer& tokenizer, const std::string& text) const {
  JinjaChat::Answer frame = jinja_ ? jinja_->answer() : JinjaChat::Answer{"", std::string(kEnd), false, false};
  std::vector<int32_t> all = tokenizer.encode(frame.behind);
  for (size_t length = 1; length <= frame.behind.size(); ++length) {  // Up to where the first control token is whole.
    std::string end = frame.behind.substr(0, length);
    std::vector<int32_t> ids = tokenizer.encode(end);
    if (ids.empty() || !tokenizer.is_special(ids.back())) continue;
    if (ids.size() > all.size() || !std::equal(ids.begin(), ids.end(), all.begin()))
      continue;  // A longer one begins so.
    return {{frame.before, true}, {JinjaChat::stripped(text, frame.strip_left, frame.strip_right), false}, {end, true}};
  }
  throw usage_error(
      cat("the chat template puts no control token behind an answer, but \"", valid_utf8(frame.behind), "\""), "",
      "an answer must end with a token of its own; use another model or template");
}

}  // namespace tritonrl
