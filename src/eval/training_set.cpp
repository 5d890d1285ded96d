// SPDX-License-Identifier: Apache-2.0
#include "eval/training_set.h"

#include <algorithm>

#include "base/files/json_fields.h"
#include "base/text.h"

namespace tritonrl {

bool TrainingSet::compared_with(const std::vector<std::string>& sources) const {
  return benchmark && start.empty() && std::ranges::all_of(sources, [&](const std::string& source) {
           return std::ranges::binary_search(benchmark->sources, source);
         });
}

std::string TrainingSet::words() const {
  if (!benchmark) return "Training was not compared with any benchmark (data.exclude names one).";
  std::string name = std::filesystem::path(benchmark->file).filename().string();
  std::string out = cat("No training task of level 2 or above has the graph of a task of ", name, ": ", compared,
                        " compared with ", benchmark->graphs, " graphs of its ", benchmark->tasks, " tasks (SHA-256 ",
                        benchmark->sha256.substr(0, 12), "), ", left_out, " draws left out.");
  if (streamed > 0) out += cat(" ", streamed, " examples of the stream were compared as they were drawn.");
  if (not_comparable + benchmark->unknown > 0) {
    out += cat(" Not comparable: ", not_comparable, " training tasks, ", benchmark->unknown, " of the benchmark's.");
  }
  if (!start.empty()) out += cat(" The model it began with was not compared with it: ", start, ".");
  return out;
}

std::optional<TrainingSet> load_training_set(const std::filesystem::path& run) {
  auto file = run / kTrainingSetFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return from_json<TrainingSet>(read_json(file), "a training set", file.string());
}

void split_by_teaching(const TrainingSet& set, const TaskOperators& recorded, const std::vector<EvalRecord>& records,
                       ResultsRow* row) {
  TaskOperators classes;
  for (const EvalRecord& record : records) {
    if (record.level != 1 || classes.contains(record.task_id)) continue;
    auto known = recorded.find(record.task_id);
    bool named = known != recorded.end() && !known->second.empty();
    bool taught = named && std::ranges::all_of(known->second, [&](const std::string& name) {
                    return std::ranges::binary_search(set.operators, name);
                  });
    const char* never = set.operators_unknown > 0 ? kTeachingUnknown : kNeverSeen;
    classes[record.task_id] = {!named ? kTeachingUnknown : taught ? kTaught : never};
  }
  row->teaching = by_operator(records, classes);
}

}  // namespace tritonrl
