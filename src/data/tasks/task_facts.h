// SPDX-License-Identifier: Apache-2.0
// TaskFacts: what statistics and filters say about a task, read out of its source without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "data/tasks/task.h"

namespace tritonrl {

struct TaskFacts {
  std::set<std::string> operators;  // As filters compare them: see operator_key().
  std::set<std::string> dtypes;     // "float32" where the source names none.
  int64_t elements = 0;             // Of all inputs at full size; 0 = could not be read out of get_inputs().
};
TaskFacts facts_of(const Task& task);
// Task id -> its operators.
std::map<std::string, std::set<std::string>> operators_by_task(const std::vector<Task>& tasks);

// "LayerNorm", "layer_norm" and "F.layer_norm" are one operator: small letters, no underscores.
std::string operator_key(const std::string& name);

// Value of an integer expression (+ - * // and parentheses) over module-level constants NAME = 12 of a source; nothing
// when it is something else.
std::optional<int64_t> whole_value(const std::string& expression, const std::map<std::string, int64_t>& constants);

}  // namespace tritonrl
