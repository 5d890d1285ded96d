// SPDX-License-Identifier: Apache-2.0
// The user's turn that follows an answer: what became of it, in a text from prompts/feedback.txt.
#pragma once

#include <string>

#include "data/prompt.h"

namespace tritonrl {

// Two texts with one {{feedback}} place holder each: above a line "---" for an answer that is to be corrected, below it
// for one that is correct and may become faster. Without that line one text serves both.
class FeedbackPrompt {
 public:
  // Throws Error (usage) when the file is missing, or a text does not have the place holder once.
  static FeedbackPrompt load(const std::string& path);
  Message render(const std::string& feedback, bool correct) const;

 private:
  std::string wrong_, correct_;
};

}  // namespace tritonrl
