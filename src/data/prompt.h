// SPDX-License-Identifier: Apache-2.0
// Prompts: what the policy is shown for a task, as chat messages. Texts live in prompts/*.txt, not in code.
#pragma once

#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace tritonrl {

struct Message {
  std::string role;  // "system", "user" or "assistant".
  std::string content;
};

// A prompt text with one {{source}} place holder; the part above a line "---" is the system message (may be empty).
class PromptTemplate {
 public:
  // Throws Error (usage) when the file is missing or has no place holder.
  static PromptTemplate load(const std::string& path);
  std::vector<Message> render(const Task& task) const;

 private:
  std::string system_, user_;
};

// The answer a policy is taught for a task with a solution: one fenced Python block; with a plan before it where that
// is asked for (data/plan_text.h).
std::string answer_for(const Task& task, bool with_plan = false);

}  // namespace tritonrl
