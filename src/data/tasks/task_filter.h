// SPDX-License-Identifier: Apache-2.0
// TaskFilter: a small language for picking tasks: `level=2 and (op=softmax or op=layer_norm) and not dtype=float16`.
//
//   expression = term {("and" | "or") term}, "and" binds tighter; term = ["not"] (comparison | "(" expression ")")
//   comparison = field operator value; operators = != < <= > >= and ~ (contains, texts only)
//   numbers: level, difficulty (0 = not known), elements (of all inputs; 0 = not known), characters (of the source)
//   texts:   id, name, origin, licence, graph;   sets (= and != only): op, dtype;   yes / no: solution
// Values are numbers, bare words, or texts in single or double quotes.
#pragma once

#include <functional>
#include <string>

#include "data/tasks/task_facts.h"

namespace tritonrl {

using TaskFilter = std::function<bool(const Task&, const TaskFacts&)>;

// Throws Error (usage) that says where in the text it stopped and what would fit there. "" lets everything through.
TaskFilter parse_task_filter(const std::string& text);

}  // namespace tritonrl
