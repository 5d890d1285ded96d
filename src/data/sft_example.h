// SPDX-License-Identifier: Apache-2.0
// SftExample: one prompt and the answer a policy is taught for it.
#pragma once

#include <string>
#include <vector>

#include "data/prompt.h"

namespace tritonrl {

struct SftExample {
  std::string task_id;
  std::vector<Message> prompt;
  std::string answer;   // The assistant's text; the chat template adds the end-of-turn token.
  double weight = 1.0;  // Factor of this example's loss; 1 for supervised examples.
};

// Examples of the tasks that have a solution, in their order. Callers verify solutions before they teach them.
inline std::vector<SftExample> sft_examples(const std::vector<Task>& tasks, const PromptTemplate& prompt) {
  std::vector<SftExample> examples;
  for (const Task& task : tasks) {
    if (!task.solution.empty()) examples.push_back({task.id, prompt.render(task), answer_for(task), 1.0});
  }
  return examples;
}

}  // namespace tritonrl
