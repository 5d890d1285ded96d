// SPDX-License-Identifier: Apache-2.0
#include "data/feedback_prompt.h"

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr char kFeedbackPlace[] = "{{feedback}}";

std::string checked(const std::string& text, const std::string& path) {
  std::string trimmed = trim(text);
  size_t first = trimmed.find(kFeedbackPlace);
  if (first == std::string::npos) {
    throw usage_error(cat("a feedback text has no ", kFeedbackPlace), path,
                      cat("put ", kFeedbackPlace, " where the verdict belongs, above and below a line ---"));
  }
  if (trimmed.find(kFeedbackPlace, first + 1) != std::string::npos) {
    throw usage_error(cat("a feedback text has more than one ", kFeedbackPlace), path);
  }
  return trimmed;
}

}  // namespace

FeedbackPrompt FeedbackPrompt::load(const std::string& path) {
  std::string above, below;
  bool under = false;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (!under && trim(line) == "---") {
      under = true;
    } else {
      (under ? below : above) += line + "\n";
    }
  }
  FeedbackPrompt result;
  result.wrong_ = checked(above, path);
  result.correct_ = under ? checked(below, path) : result.wrong_;
  return result;
}

Message FeedbackPrompt::render(const std::string& feedback, bool correct) const {
  return {"user", replace_all(correct ? correct_ : wrong_, kFeedbackPlace, feedback)};
}

}  // namespace tritonrl
