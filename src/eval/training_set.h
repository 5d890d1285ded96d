// SPDX-License-Identifier: Apache-2.0
// TrainingSet: what a run was taught and what it was kept from, as training_set.json in its directory says it.
//
// An evaluation asks it two things: was this benchmark compared with what the model was trained on, and which of its
// single operators had training tasks at all?
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/metrics.h"

namespace tritonrl {

// The file of data.exclude, as it was when the run began.
struct ExcludedBenchmark {
  std::string file, sha256;
  int64_t tasks = 0, graphs = 0;
  int64_t unknown = 0;               // Of its tasks of level 2 and above, those that could not be compared.
  std::vector<std::string> sources;  // SHA-256 of each task's source, sorted.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("file", self.file);
    v("sha256", self.sha256);
    v("tasks", self.tasks);
    v("graphs", self.graphs);
    v("unknown", self.unknown);
    v("sources", self.sources);
  }
};

struct TrainingSet {
  std::optional<ExcludedBenchmark> benchmark;  // Empty = compared with none.
  int64_t compared = 0;                        // Training tasks of level 2 and above, all without its graphs;
  int64_t streamed = 0;                        // Examples straight from the stream, each compared as it was drawn;
  int64_t not_comparable = 0;                  // and those that could not be recorded.
  int64_t left_out = 0;                        // Graphs that the stream drew and dropped.
  std::string start;                           // A trained model it began with that was not compared so; "" = none.
  std::vector<std::string> operators;          // Of training tasks, those the stream could have drawn included; sorted.
  int64_t operators_unknown = 0;               // Training tasks whose operators are not known.

  template <class Self, class V>
  static void json_fields(Self& self, V& v) {
    v("benchmark", self.benchmark);
    v("compared", self.compared);
    v.optional("streamed", self.streamed);
    v("not_comparable", self.not_comparable);
    v("left_out", self.left_out);
    v.optional("start", self.start);
    v("operators", self.operators);
    v("operators_unknown", self.operators_unknown);
  }
  // Were all of these compared? By SHA-256 of the tasks' sources.
  bool compared_with(const std::vector<std::string>& sources) const;
  // One or two sentences for logs and reports.
  std::string words() const;
};

constexpr const char* kTrainingSetFile = "training_set.json";

// Of a run directory; empty where it has none. Throws Error (usage) for a file that is something else.
std::optional<TrainingSet> load_training_set(const std::filesystem::path& run);

// Fills in row->teaching: the tasks of level 1 by whether all their operators had training tasks. `recorded`:
// operators of each task, as `data import` records them.
void split_by_teaching(const TrainingSet& set, const TaskOperators& recorded, const std::vector<EvalRecord>& records,
                       ResultsRow* row);

}  // namespace tritonrl
