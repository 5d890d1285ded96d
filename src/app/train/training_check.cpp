// SPDX-License-Identifier: Apache-2.0
#include "app/train/training_check.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "app/assemble.h"
#include "app/commands/commands_data.h"
#include "base/files/secure_hash.h"
#include "base/log.h"

namespace tritonrl {

namespace {

namespace fs = std::filesystem;

bool is_fusion(const Task& task) { return task.level >= 2; }

// Fills in what tasks from a file compute, where nobody has recorded it, or an earlier version has.
void record_fusions(std::vector<Task>& tasks, const std::function<Verifier&()>& open_verifier) {
  std::vector<Task*> open;
  for (Task& task : tasks) {
    if (is_fusion(task) && task.recorded.operators.empty()) open.push_back(&task);
  }
  if (open.empty()) return;
  Verifier& verifier = open_verifier();
  for_each_task(verifier, "recording training tasks", open.size(), [&](size_t i) { record_task(verifier, open[i]); });
}

// What a run begins with, where that was trained before and its training is not known to have left out the benchmark.
std::string unproven_start(const Config& config, const TrainingSet& set, std::set<std::string>* operators) {
  fs::path model = find_model(config.policy.model);
  std::vector<fs::path> trained;
  if (fs::exists(model / "checkpoint.json")) trained.push_back(model);
  if (!config.policy.adapter.empty()) trained.emplace_back(config.policy.adapter);
  for (const fs::path& start : trained) {
    auto before = training_set_of_checkpoint(start);
    if (!before) return start.string();
    operators->insert(before->operators.begin(), before->operators.end());
    bool same = set.benchmark && before->benchmark && before->benchmark->sha256 == set.benchmark->sha256;
    if (!same || !before->start.empty()) return start.string();
  }
  return "";
}

}  // namespace

TrainingSet check_training(const Config& config, const Exclusion& exclusion, Splits* splits,
                           const std::function<Verifier&()>& verifier) {
  struct Source {
    const char* key;
    const TaskFileConfig* file;
    std::vector<Task>* tasks;
    bool used;
  };
  const Source sources[] = {{"data.train", &config.data.train, &splits->train, config.sft.enabled},
                            {"data.rl", &config.data.rl, &splits->rl, config.rl.steps > 0}};
  TrainingSet set;
  if (!exclusion.empty()) {
    set.benchmark = {exclusion.file,    exclusion.hash,
                     exclusion.tasks,   static_cast<int64_t>(exclusion.outlines.size()),
                     exclusion.unknown, {exclusion.sources.begin(), exclusion.sources.end()}};
  }
  std::set<std::string> operators;
  for (const Source& source : sources) {
    if (!source.used) continue;
    auto fusions = std::count_if(source.tasks->begin(), source.tasks->end(), is_fusion);
    if (source.file->file.empty()) {  // The stream compares as it draws.
      operators.merge(graphs::drawable_operators(config.data.synth));
      set.left_out = splits->excluded_draws;
      if (source.tasks == &splits->train && !exclusion.empty()) set.streamed = config.data.train.stream;
      set.compared += exclusion.empty() ? 0 : fusions;
      continue;
    }
    if (!exclusion.empty()) {
      record_fusions(*source.tasks, verifier);
      std::vector<std::string> pairs = exclusion.pairs(*source.tasks);
      if (!pairs.empty()) {
        auto count = pairs.size();
        pairs.resize(std::min<size_t>(count, 5));
        throw usage_error(
            cat(count, " training tasks have the graph of a task of ", exclusion.file,
                ", which data.exclude keeps from training: ", join(pairs, ", "), count > 5 ? ", ..." : ""),
            cat(source.key, ": ", source.file->file),
            "`tritonrl data check-split --from-level 2 --clean FILE` writes the set without them");
      }
    }
    for (const Task& task : *source.tasks) {
      bool known = !task.recorded.operators.empty();
      operators.insert(task.recorded.operators.begin(), task.recorded.operators.end());
      set.operators_unknown += !known;
      if (exclusion.empty() || !is_fusion(task)) continue;
      (known ? set.compared : set.not_comparable) += 1;
    }
  }
  set.start = unproven_start(config, set, &operators);
  set.operators = {operators.begin(), operators.end()};
  return set;
}

std::optional<TrainingSet> training_set_of_checkpoint(const fs::path& folder) {
  fs::path name = fs::weakly_canonical(folder);
  if (name.filename().empty()) name = name.parent_path();
  if (name.parent_path().filename() != "checkpoints") {  // An adapter that was exported brings its own.
    return fs::exists(name / "adapter_config.json") ? load_training_set(name) : std::nullopt;
  }
  return load_training_set(name.parent_path().parent_path());
}

void note_training(const TrainingSet& set, const std::vector<Task>& tasks, const std::vector<EvalRecord>& records,
                   ResultsRow* row) {
  TaskOperators recorded;
  std::vector<std::string> sources;
  for (const Task& task : tasks) {
    recorded[task.id] = {task.recorded.operators.begin(), task.recorded.operators.end()};
    sources.push_back(secure_hash(task.source));
  }
  split_by_teaching(set, recorded, records, row);
  row->compared_with_training = set.compared_with(sources);
  if (*row->compared_with_training) return;
  log_warn("these tasks were not all compared with what the model was trained on: it may have seen their graphs. " +
           set.words());
}

}  // namespace tritonrl
