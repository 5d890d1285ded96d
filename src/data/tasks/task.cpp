// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task.h"

#include <set>

#include "base/files/json_fields.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl {

namespace {

void check_source(const std::string& source, const std::string& where) {
  if (int64_t line = first_syntax_error(source); line > 0) {
    throw usage_error(cat("task source is not valid Python (line ", line, " of the source)"), where);
  }
  auto defined = top_level_definitions(source);
  for (const char* name : {"Model", "get_inputs", "get_init_inputs"}) {
    if (defined.count(name) > 0) continue;
    bool is_class = std::string(name) == "Model";
    throw usage_error(cat("task source has no ", is_class ? "class " : "function ", name), where,
                      "a task is a Python file with class Model(nn.Module), get_inputs() and get_init_inputs()");
  }
}

}  // namespace

std::string Recorded::problem() const { return level < 1 || level > 3 ? cat("level is ", level, ", not 1 to 3") : ""; }

std::string Task::problem() const {
  if (id.empty()) return "field \"id\" is empty";
  if (level < 1 || level > 9) return cat("level is ", level, ", not 1 to 9");
  for (const auto& [key, sizes] : {std::pair("tiny", &tiny), std::pair("larger", &larger)}) {
    for (const auto& [name, size] : *sizes) {
      if (size < 1) return cat("field \"", key, ".", name, "\" must be at least 1");
    }
  }
  return "";
}

Json to_json(const Task& task) { return json_of(task); }

Task task_from_json(const Json& json, const std::string& where) {
  Task task = from_json<Task>(json, "a task", where);
  if (json.contains("difficulty") && task.difficulty < 1) {
    throw usage_error("field \"difficulty\" of a task must be at least 1", where);
  }
  check_source(task.source, where);
  return task;
}

Task task_from_python(const std::filesystem::path& path) {
  Task task;
  task.source = read_file(path);
  check_source(task.source, path.string());
  task.id = path.filename().string();
  task.name = path.stem().string();
  task.graph_hash = graph_hash_of_source(task.source);
  task.origin = "file";
  return task;
}

std::vector<Task> load_tasks(const std::filesystem::path& path) {
  std::vector<Task> tasks;
  std::map<std::string, int64_t> line_of;
  for_each_json_line(path, [&](int64_t line, const Json& json) {
    std::string where = cat(path.string(), ":", line);
    Task task = task_from_json(json, where);
    auto [it, added] = line_of.try_emplace(task.id, line);
    if (!added) throw usage_error(cat("task id '", task.id, "' was used in line ", it->second), where);
    tasks.push_back(std::move(task));
  });
  return tasks;
}

void save_tasks(const std::filesystem::path& path, const std::vector<Task>& tasks) {
  std::string lines;
  for (const Task& task : tasks) lines += json_line(to_json(task)) + "\n";
  write_file(path, lines);
}

}  // namespace tritonrl
