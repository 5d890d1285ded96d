// SPDX-License-Identifier: Apache-2.0
// Statistics of a task set, as text, JSON and a report page. One pass over the file; memory grows by two numbers a
// task.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/files/json.h"
#include "data/tasks/task_facts.h"
#include "report/document.h"

namespace tritonrl {

struct TaskStats {
  int64_t tasks = 0, with_solution = 0, graphs = 0;  // Different graph hashes.
  std::map<int64_t, int64_t> levels, difficulties;   // Difficulty 0 = not known.
  std::map<std::string, int64_t> operators, dtypes;  // Tasks that have it.
  std::map<int64_t, int64_t> elements;               // By power of ten of the inputs' elements; -1 = not known.
  std::string unit;                                  // Of lengths: "tokens" or "characters".
  std::vector<int64_t> source_lengths, solution_lengths;
};

// `length` measures a text in `unit`. Throws Error with file:line.
TaskStats stats_of(const std::filesystem::path& tasks, const std::string& unit,
                   const std::function<int64_t(const std::string&)>& length);
Json to_json(const TaskStats& stats);
std::string to_text(const TaskStats& stats);
reporting::Document to_document(const TaskStats& stats, const std::string& title);

}  // namespace tritonrl
