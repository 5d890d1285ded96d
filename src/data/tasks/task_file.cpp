// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_file.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files/json.h"
#include "base/rng.h"
#include "base/text.h"

namespace tritonrl {

void LevelCounts::validate() const {
  for (int64_t count : {level1, level2, level3, level4}) {
    if (count < 0) throw usage_error("counts of tasks must be at least 0");
  }
}

void TrainTasksConfig::validate() const {
  if (stream < 0) throw usage_error("stream must be at least 0");
  if (stream > 0 && !file.empty()) {
    throw usage_error("both a file and a stream of supervised tasks are named", "", "leave out one of them");
  }
}

std::vector<Task> select_tasks(const TaskFileConfig& config, const std::string& where) {
  std::vector<Task> tasks = load_tasks(config.file);
  size_t flagged = tasks.size();
  if (!config.keep_flagged) std::erase_if(tasks, [](const Task& task) { return !task.flags.empty(); });
  flagged -= tasks.size();
  if (!config.select.any()) return tasks;
  const int64_t wanted[] = {0, config.select.level1, config.select.level2, config.select.level3, config.select.level4};
  std::vector<bool> taken(tasks.size());
  for (int level = 1; level <= 4; ++level) {
    std::vector<size_t> members;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].level == level) members.push_back(i);
    }
    if (static_cast<int64_t>(members.size()) < wanted[level]) {
      throw usage_error(cat(where, " wants ", wanted[level], " tasks of level ", level, ", there are ", members.size(),
                            flagged > 0 ? cat(" (", flagged, " of all levels are flagged)") : ""),
                        config.file, "lower the count, or import more tasks");
    }
    Rng(static_cast<uint64_t>(config.seed)).at("select").at(static_cast<uint64_t>(level)).shuffle(members);
    for (int64_t i = 0; i < wanted[level]; ++i) taken[members[static_cast<size_t>(i)]] = true;
  }
  std::vector<Task> out;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (taken[i]) out.push_back(std::move(tasks[i]));
  }
  return out;
}

std::vector<Task> tasks_of_ids(const std::vector<Task>& tasks, const std::filesystem::path& ids) {
  std::map<std::string, const Task*> by_id;
  for (const Task& task : tasks) by_id[task.id] = &task;
  std::vector<Task> out;
  int64_t line = 0;
  for (const std::string& text : split(read_file(ids), '\n')) {
    ++line;
    std::string id = trim(text.substr(0, text.find('#')));
    if (id.empty()) continue;
    auto it = by_id.find(id);
    if (it == by_id.end()) {
      throw usage_error(cat("the tasks have no '", id, "'"), cat(ids.string(), ":", line), "is it the right task set?");
    }
    out.push_back(*it->second);
  }
  if (out.empty()) throw usage_error("holds no ids", ids.string());
  return out;
}

}  // namespace tritonrl
