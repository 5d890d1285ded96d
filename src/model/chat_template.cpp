// SPDX-License-Identifier: Apache-2.0
// Recognition of the two ChatML templates and their rendering.
#include "model/chat_template.h"

#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

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

}  // namespace

ChatTemplate ChatTemplate::recognise(const std::string& jinja, const std::string& where) {
  std::string text = canonical(jinja);
  if (auto system = default_system_in(text, canonical(kSmolLm2))) return ChatTemplate(*system);
  if (auto system = default_system_in(text, canonical(kQwen25))) return ChatTemplate(*system);
  throw usage_error("unknown chat template", where,
                    "known are those of SmolLM2-Instruct and Qwen2.5-Instruct; use such a model, or its chat_template");
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder) {
  std::filesystem::path jinja = folder / "chat_template.jinja", config_path = folder / "tokenizer_config.json";
  if (std::filesystem::exists(jinja)) return recognise(read_file(jinja), jinja.string());
  Json config = read_json(config_path);
  Json found = config.is_object() && config.contains("chat_template") ? config["chat_template"] : Json();
  if (found.is_array()) {  // Several by name.
    for (const Json& entry : found) {
      if (entry.is_object() && entry.contains("template") && entry.value("name", Json()) == "default") {
        found = Json(entry["template"]);
        break;
      }
    }
  }
  if (!found.is_string()) {
    throw usage_error("there is no chat template", config_path.string(), "use an instruct model, not a base model");
  }
  return recognise(found.get<std::string>(), config_path.string());
}

std::vector<Message> ChatTemplate::complete(const std::vector<Message>& messages) const {
  if (messages.empty()) throw usage_error("a chat without messages", "", "give at least a user message");
  std::vector<Message> result;
  if (messages[0].role != "system") result.push_back({"system", default_system_});
  for (const Message& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      throw usage_error(cat("unknown role \"", valid_utf8(message.role), "\""), "", "roles: system, user, assistant");
    }
    result.push_back(message);
  }
  return result;
}

std::string ChatTemplate::render(const std::vector<Message>& messages, bool add_generation_prompt) const {
  std::string out;
  for (const Message& message : complete(messages)) {
    out += cat("<|im_start|>", message.role, "\n", message.content, "<|im_end|>\n");
  }
  if (add_generation_prompt) out += "<|im_start|>assistant\n";
  return out;
}

std::vector<int32_t> ChatTemplate::encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                          bool add_generation_prompt) const {
  auto start = tokenizer.token_to_id("<|im_start|>"), end = tokenizer.token_to_id("<|im_end|>");
  if (!start || !end)
    throw usage_error("the tokenizer has no <|im_start|> or no <|im_end|>", "", "use its own template");
  std::vector<int32_t> out;
  auto append = [&](std::string_view text) {
    std::vector<int32_t> ids = tokenizer.encode_plain(text);
    out.insert(out.end(), ids.begin(), ids.end());
  };
  for (const Message& message : complete(messages)) {
    out.push_back(*start);
    append(cat(message.role, "\n", message.content));
    out.push_back(*end);
    append("\n");
  }
  if (add_generation_prompt) {
    out.push_back(*start);
    append("assistant\n");
  }
  return out;
}

}  // namespace tritonrl
