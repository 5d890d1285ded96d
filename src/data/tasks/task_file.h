// SPDX-License-Identifier: Apache-2.0
// TaskFileConfig: a task set from a file, and which of its tasks to take. One config line:
//   data: {train: {file: tasks.jsonl, select: {1: 150, 2: 50}, seed: 7}}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/tasks/task.h"

namespace tritonrl {

// Tasks of each level to take; all 0 = everything there is.
struct LevelCounts {
  int64_t level1 = 0, level2 = 0, level3 = 0, level4 = 0;
  template <class V>
  void for_each_field(V& v) {
    v("1", level1, "tasks of level 1");
    v("2", level2, "tasks of level 2");
    v("3", level3, "tasks of level 3");
    v("4", level4, "tasks of level 4");
  }
  void validate() const;
  bool any() const { return level1 + level2 + level3 + level4 > 0; }
};

struct TaskFileConfig {
  std::string file;  // "" = the synthesiser's split.
  LevelCounts select;
  int64_t seed = 7;           // Which tasks of a level are taken, where there are more than are asked for.
  bool keep_flagged = false;  // Also those that `data lint` or an importer flagged.
  template <class V>
  void for_each_field(V& v) {
    v("file", file, "task set (JSON lines); empty = what the synthesiser makes");
    v("select", select, "how many tasks of each level; none given = all");
    v("seed", seed, "draws the tasks of a level where there are more than asked for");
    v("keep_flagged", keep_flagged, "also take tasks that are flagged as useless");
  }
};

// Supervised tasks: of a file, or straight from the synthesiser's stream.
struct TrainTasksConfig : TaskFileConfig {
  int64_t stream = 0;  // So many examples, made while the model trains and kept nowhere; 0 = a file or a split.
  template <class V>
  void for_each_field(V& v) {
    TaskFileConfig::for_each_field(v);
    v("stream", stream,
      "so many examples straight from data.synth, made while the model trains; none is met twice, none is stored. 0 = "
      "those of the file, or data.split.train_level1 and train_level2");
  }
  void validate() const;
};

// Loads and selects; tasks keep their order. Throws Error (usage) when a level has too few; `where` is the config key.
std::vector<Task> select_tasks(const TaskFileConfig& config, const std::string& where);

// Ids, one a line; empty lines and those after "#" do not count. Tasks come in the order of the list, flagged ones too.
// Throws Error (usage) for an id that the tasks lack.
std::vector<Task> tasks_of_ids(const std::vector<Task>& tasks, const std::filesystem::path& ids);

}  // namespace tritonrl
