// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task.h"

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl {

namespace {

const Json* find(const Json& json, const char* key) {
  auto it = json.find(key);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

std::string text_field(const Json& json, const char* key, const std::string& where, bool required) {
  const Json* value = find(json, key);
  if (value == nullptr) {
    if (!required) return "";
    throw usage_error(cat("task has no field '", key, "'"), where);
  }
  if (!value->is_string()) throw usage_error(cat("task field '", key, "' must be a string"), where);
  return value->get<std::string>();
}

int64_t whole_number(const Json& value, const std::string& name, const std::string& where) {
  if (!value.is_number_integer()) throw usage_error(cat("task field '", name, "' must be a whole number"), where);
  return value.get<int64_t>();
}

std::map<std::string, int64_t> sizes_field(const Json& json, const std::string& key, const std::string& where) {
  std::map<std::string, int64_t> sizes;
  const Json* value = find(json, key.c_str());
  if (value == nullptr) return sizes;
  if (!value->is_object()) throw usage_error(cat("task field '", key, "' must map constants to whole numbers"), where);
  for (const auto& [name, number] : value->items()) {
    sizes[name] = whole_number(number, cat(key, ".", name), where);
    if (sizes[name] < 1) throw usage_error(cat("task field '", key, ".", name, "' must be at least 1"), where);
  }
  return sizes;
}

Recorded recorded_field(const Json& json, const std::string& where) {
  Recorded recorded;
  const Json* value = find(json, "recorded");
  if (value == nullptr) return recorded;
  if (!value->is_object()) throw usage_error("task field 'recorded' must be an object", where);
  const Json* ops = find(*value, "compute_ops");
  const Json* level = find(*value, "level");
  if (ops == nullptr || level == nullptr) throw usage_error("task field 'recorded' lacks compute_ops or level", where);
  recorded.compute_ops = whole_number(*ops, "recorded.compute_ops", where);
  int64_t number = whole_number(*level, "recorded.level", where);
  if (number < 1 || number > 3)
    throw usage_error(cat("task field 'recorded.level' is ", number, ", not 1 to 3"), where);
  recorded.level = static_cast<int>(number);
  recorded.graph = text_field(*value, "graph", where, true);
  recorded.loose_graph = text_field(*value, "loose_graph", where, true);
  return recorded;
}

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

Json to_json(const Task& task) {
  Json json = {{"id", task.id},         {"level", task.level},       {"name", task.name},
               {"source", task.source}, {"solution", task.solution}, {"graph_hash", task.graph_hash},
               {"tiny", task.tiny},     {"origin", task.origin},     {"licence", task.licence}};
  if (task.difficulty > 0) json["difficulty"] = task.difficulty;
  // Left out where there is nothing to say, so that files of older versions and of this one look alike.
  if (!task.larger.empty()) json["larger"] = task.larger;
  if (!task.flags.empty()) json["flags"] = task.flags;
  if (task.recorded.level > 0) {
    json["recorded"] = {{"compute_ops", task.recorded.compute_ops},
                        {"level", task.recorded.level},
                        {"graph", task.recorded.graph},
                        {"loose_graph", task.recorded.loose_graph}};
  }
  return json;
}

Task task_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw usage_error("a task must be a JSON object", where);
  Task task;
  task.id = text_field(json, "id", where, true);
  if (task.id.empty()) throw usage_error("task field 'id' is empty", where);
  task.source = text_field(json, "source", where, true);
  const Json* level = find(json, "level");
  if (level == nullptr) throw usage_error("task has no field 'level'", where);
  int64_t number = whole_number(*level, "level", where);
  if (number < 1 || number > 9) throw usage_error(cat("task field 'level' is ", number, ", not 1 to 9"), where);
  task.level = static_cast<int>(number);
  task.name = text_field(json, "name", where, false);
  task.solution = text_field(json, "solution", where, false);
  task.graph_hash = text_field(json, "graph_hash", where, false);
  task.origin = text_field(json, "origin", where, false);
  task.licence = text_field(json, "licence", where, false);
  task.tiny = sizes_field(json, "tiny", where);
  task.larger = sizes_field(json, "larger", where);
  task.recorded = recorded_field(json, where);
  if (const Json* flags = find(json, "flags")) {
    if (!flags->is_array()) throw usage_error("task field 'flags' must be a list", where);
    for (const Json& flag : *flags) {
      if (!flag.is_string()) throw usage_error("task field 'flags' must be a list of texts", where);
      task.flags.push_back(flag.get<std::string>());
    }
  }
  if (const Json* difficulty = find(json, "difficulty")) {
    task.difficulty = whole_number(*difficulty, "difficulty", where);
    if (task.difficulty < 1) throw usage_error("task field 'difficulty' must be at least 1", where);
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
