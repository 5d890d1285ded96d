// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl {
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
  config.base = "int8";
  EXPECT_EQ(complaint(config), "");
  for (int64_t group : {-64, 4, 63}) {
    config.int8_group = group;
    EXPECT_THAT(complaint(config), testing::HasSubstr("int8_group")) << group;
  }
}

// A conversation as the model sees it when it is to answer again.
TEST(ChatTemplate, RendersAnswersAndWhatWasSaidOfThem) {
  auto chat = ChatTemplate::recognise(
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
      "{{ '<|im_start|>system\nHELP<|im_end|>\n' }}{% endif %}"
      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
      "test");
  EXPECT_EQ(chat.render({{"user", "SOURCE"}, {"assistant", "ANSWER"}, {"user", "FEEDBACK"}}, true),
            "<|im_start|>system\nHELP<|im_end|>\n<|im_start|>user\nSOURCE<|im_end|>\n"
            "<|im_start|>assistant\nANSWER<|im_end|>\n<|im_start|>user\nFEEDBACK<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace tritonrl
