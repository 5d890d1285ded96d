// SPDX-License-Identifier: Apache-2.0
#include "data/prompt.h"

#include "base/error.h"
#include "base/text.h"
#include "data/plan_text.h"

namespace tritonrl {

namespace {
constexpr char kSourcePlace[] = "{{source}}";
}

PromptTemplate PromptTemplate::load(const std::string& path) {
  std::string text = read_file(path), system, user;
  bool in_user = false, has_rule = false;
  for (const std::string& line : split(text, '\n')) has_rule |= trim(line) == "---";
  for (const std::string& line : split(text, '\n')) {
    if (has_rule && !in_user && trim(line) == "---") {
      in_user = true;
    } else {
      (in_user || !has_rule ? user : system) += line + "\n";
    }
  }
  PromptTemplate result;
  result.system_ = trim(system);
  result.user_ = trim(user);
  size_t first = result.user_.find(kSourcePlace);
  if (first == std::string::npos) {
    throw usage_error(cat("prompt has no ", kSourcePlace, has_rule ? " below the line ---" : ""), path,
                      cat("put ", kSourcePlace, " where the task's source belongs"));
  }
  bool twice = result.user_.find(kSourcePlace, first + 1) != std::string::npos;
  if (twice || result.system_.find(kSourcePlace) != std::string::npos) {
    throw usage_error(cat("prompt has more than one ", kSourcePlace), path);
  }
  return result;
}

std::vector<Message> PromptTemplate::render(const Task& task) const {
  std::vector<Message> messages;
  if (!system_.empty()) messages.push_back({"system", system_});
  messages.push_back({"user", replace_all(user_, kSourcePlace, trim(task.source))});
  return messages;
}

std::string answer_for(const Task& task, bool with_plan) {
  std::string plan = with_plan ? plan_of(task.source, task.solution) : "";
  return cat(plan, plan.empty() ? "" : "\n\n", "```python\n", trim(task.solution), "\n```");
}

}  // namespace tritonrl
