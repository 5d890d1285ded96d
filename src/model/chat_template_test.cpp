// SPDX-License-Identifier: Apache-2.0
// Chat rendering against apply_chat_template of transformers; recognition of templates.
#include "model/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kGolden = fs::path(TRITONRL_SOURCE_DIR) / "tests/golden/tokenizer";

std::string template_of(const std::string& family) {
  return read_json(kGolden / (family + "_tiny") / "tokenizer_config.json")["chat_template"];
}

TEST(ChatTemplate, MatchesTransformers) {
  struct Family {
    ChatTemplate chat;
    Tokenizer tokenizer;
  };
  std::map<std::string, Family> families;
  for (const char* name : {"smollm2", "qwen2"}) {
    fs::path folder = kGolden / cat(name, "_tiny");
    families.emplace(name, Family{ChatTemplate::load(folder), Tokenizer::load(folder)});
  }
  int rows = 0;
  for_each_json_line(kGolden / "chat.jsonl", [&](int64_t line, const Json& row) {
    const Family& family = families.at(row["family"]);
    std::vector<Message> messages;
    for (const Json& message : row["messages"]) messages.push_back({message["role"], message["content"]});
    bool generate = row["generate"];
    EXPECT_EQ(family.chat.render(messages, generate), row["text"].get<std::string>()) << "line " << line;
    auto theirs = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(family.tokenizer.encode(row["text"].get<std::string>()), theirs) << "line " << line;
    std::vector<int32_t> ours = family.chat.encode(family.tokenizer, messages, generate);
    if (!row["forged"]) {
      EXPECT_EQ(ours, theirs) << "line " << line;
    } else {
      // The template's own control tokens and no others.
      size_t blocks = messages.size() + (messages[0].role != "system" ? 1 : 0);
      EXPECT_EQ(std::ranges::count_if(ours, [&](int32_t id) { return family.tokenizer.is_special(id); }),
                static_cast<ptrdiff_t>(2 * blocks + (generate ? 1 : 0)))
          << "line " << line;
      EXPECT_EQ(family.tokenizer.decode(ours), row["text"].get<std::string>()) << "line " << line;
    }
    ++rows;
  });
  EXPECT_EQ(rows, 120);
}

TEST(ChatTemplate, FindsTheDefaultSystemMessage) {
  EXPECT_EQ(ChatTemplate::recognise(template_of("smollm2"), "x").default_system(),
            "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  EXPECT_EQ(ChatTemplate::recognise(template_of("qwen2"), "x").default_system(),
            "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
  std::string other = replace_all(template_of("qwen2"), "You are Qwen, created by Alibaba Cloud.", "Be brief.");
  EXPECT_EQ(ChatTemplate::recognise(other, "x").default_system(), "Be brief. You are a helpful assistant.");
  // Escaped or real line breaks in quotes, any white space in blocks: the same template.
  EXPECT_NO_THROW(ChatTemplate::recognise(replace_all(template_of("smollm2"), "\n", "\\n"), "x"));
  EXPECT_NO_THROW(ChatTemplate::recognise(replace_all(template_of("smollm2"), "{% if", "{%  if "), "x"));
}

std::string error_of(const std::string& jinja) {
  try {
    ChatTemplate::recognise(jinja, "x/tokenizer_config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_FALSE(error.hint().empty());
    return error.what();
  }
  return "no error";
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of(""), HasSubstr("unknown chat template"));
  EXPECT_THAT(error_of("{{ messages }}"), HasSubstr("unknown chat template"));
  for (std::string family : {"smollm2", "qwen2"}) {
    std::string good = template_of(family);
    EXPECT_EQ(error_of(good), "no error");
    // White space that is output, a trimmed message, another role marker, more text: another template.
    EXPECT_NE(error_of(replace_all(good, "'<|im_end|>' + '\n'", "'<|im_end|>'")) +
                  error_of(replace_all(good, "'<|im_end|>' + '\\n'", "'<|im_end|>'")),
              "no errorno error");
    EXPECT_THAT(error_of(replace_all(good, "<|im_start|>", "<|start|>")), HasSubstr("unknown chat template"));
    EXPECT_THAT(error_of(replace_all(replace_all(good, "message.content +", "message.content | trim +"),
                                     "message['content']", "message['content'] | trim")),
                HasSubstr("unknown chat template"));
    EXPECT_THAT(error_of(good + "x"), HasSubstr("unknown chat template"));
    EXPECT_THAT(error_of(" " + good), family == "smollm2" ? HasSubstr("unknown chat template") : HasSubstr("no error"));
    EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("unknown chat template"));
  }
}

TEST(ChatTemplate, RefusesBadMessages) {
  ChatTemplate chat = ChatTemplate::load(kGolden / "qwen2_tiny");
  EXPECT_THROW(chat.render({}, true), Error);
  EXPECT_THROW(chat.render({{"tool", "x"}}, true), Error);
}

TEST(ChatTemplate, LooksInBothFiles) {
  fs::path folder = fs::path(testing::TempDir()) / cat("chat_", ::getpid());
  fs::create_directories(folder);
  EXPECT_THROW(ChatTemplate::load(folder), Error);
  write_file(folder / "tokenizer_config.json", "{}");
  EXPECT_THROW(ChatTemplate::load(folder), Error);
  Json named = Json::array(
      {{{"name", "tool_use"}, {"template", "?"}}, {{"name", "default"}, {"template", template_of("qwen2")}}});
  write_file(folder / "tokenizer_config.json", Json{{"chat_template", named}}.dump());
  EXPECT_THAT(ChatTemplate::load(folder).default_system(), HasSubstr("Qwen"));
  write_file(folder / "chat_template.jinja", template_of("smollm2"));
  EXPECT_THAT(ChatTemplate::load(folder).default_system(), HasSubstr("SmolLM")) << "the .jinja file wins";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tritonrl
