// SPDX-License-Identifier: Apache-2.0
#include "data/feedback_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"

namespace tritonrl::feedback_prompt_test {
namespace {

FeedbackPrompt load(const std::string& text) {
  std::string path = testing::TempDir() + "/feedback_prompt.txt";
  write_file(path, text);
  return FeedbackPrompt::load(path);
}

std::string complaint(const std::string& text) {
  try {
    load(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "none";
}

TEST(FeedbackPrompt, HasATextForWrongAnswersAndOneForCorrectOnes) {
  FeedbackPrompt prompt = load("Wrong: {{feedback}}\nMend it.\n---\nRight: {{feedback}}\n");
  EXPECT_EQ(prompt.render("no code", false).content, "Wrong: no code\nMend it.");
  EXPECT_EQ(prompt.render("{{feedback}}", true).content, "Right: {{feedback}}");
  EXPECT_EQ(prompt.render("", true).role, "user");
  EXPECT_EQ(load("{{feedback}}").render("x", true).content, "x");
}

TEST(FeedbackPrompt, BothNeedThePlaceHolderOnce) {
  EXPECT_THAT(complaint("Mend it.\n---\n{{feedback}}"), testing::HasSubstr("no {{feedback}}"));
  EXPECT_THAT(complaint("{{feedback}}\n---\nFaster."), testing::HasSubstr("no {{feedback}}"));
  EXPECT_THAT(complaint("{{feedback}} {{feedback}}"), testing::HasSubstr("more than one"));
  EXPECT_NE(FeedbackPrompt::load(source_dir() + "/prompts/feedback.txt").render("a", true).content,
            FeedbackPrompt::load(source_dir() + "/prompts/feedback.txt").render("a", false).content);
}

}  // namespace
}  // namespace tritonrl::feedback_prompt_test
