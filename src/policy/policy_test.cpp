// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/tiny_model.h"

namespace tritonrl::policy_test {
namespace {

std::string complaint(const PolicyConfig& config) {
  try {
    config.validate();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "";
}

TEST(PolicyConfig, GroupsAreForAnInt8BaseAndMultiplesOfEight) {
  PolicyConfig config;
  EXPECT_EQ(complaint(config), "");
  config.int8_group = 64;
  EXPECT_THAT(complaint(config), testing::HasSubstr("base: int8"));
  config.base = BaseWeights::kInt8;
  EXPECT_EQ(complaint(config), "");
  for (int64_t group : {-64, 4, 63}) {
    config.int8_group = group;
    EXPECT_THAT(complaint(config), testing::HasSubstr("int8_group")) << group;
  }
}

// A conversation as the model sees it when it is to answer again.
TEST(ChatTemplate, RendersAnswersAndWhatWasSaidOfThem) {
  auto chat = ChatTemplate::from_jinja(
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
      "{{ '<|im_start|>system\nHELP<|im_end|>\n' }}{% endif %}"
      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
      Json::object(), "test");
  EXPECT_EQ(chat.render({{"user", "SOURCE"}, {"assistant", "ANSWER"}, {"user", "FEEDBACK"}}, true),
            "<|im_start|>system\nHELP<|im_end|>\n<|im_start|>user\nSOURCE<|im_end|>\n"
            "<|im_start|>assistant\nANSWER<|im_end|>\n<|im_start|>user\nFEEDBACK<|im_end|>\n<|im_start|>assistant\n");
}

// A template that Jinja runs, with text of its own between an answer and the token that ends it.
TEST(Policy, ExamplesEndAsTheTemplateEndsAnswers) {
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / cat("policy_jinja_", ::getpid());
  write_tiny_model(folder);
  write_file(folder / "tokenizer_config.json",
             Json{{"chat_template",
                   "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}"
                   "{% if m.role == 'assistant' %}{{ '<|endoftext|>' }}{% endif %}{% endfor %}"
                   "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"}}
                 .dump());
  PolicyConfig config;
  config.model = folder.string();
  config.device = "cpu";
  Policy policy = Policy::open(config, PromptTemplate::load(source_dir() + "/prompts/triton.txt"));
  Task task;
  task.id = "x";
  task.source = "SOURCE";
  std::vector<int32_t> prompt = policy.encode_prompt(task);
  EXPECT_TRUE(policy.tokenizer().decode(prompt).ends_with("\nassistant: "));
  EncodedExample example = policy.encode_example(prompt, "ANSWER <|im_end|>");
  EXPECT_EQ(policy.tokenizer().decode(std::span(example.tokens).subspan(prompt.size())),
            "ANSWER <|im_end|>\n<|endoftext|>");
  int32_t end = *policy.tokenizer().token_to_id("<|endoftext|>");
  EXPECT_EQ(example.tokens.back(), end);
  EXPECT_EQ(std::count(example.tokens.begin(), example.tokens.end(), end), 1);
  EXPECT_EQ(std::count(example.tokens.begin(), example.tokens.end(), *policy.tokenizer().token_to_id("<|im_end|>")), 0);
  const PolicySnapshot snapshot = policy.snapshot();
  const auto& stop = snapshot.text().stop.ids;
  EXPECT_NE(std::find(stop.begin(), stop.end(), end), stop.end());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tritonrl::policy_test
