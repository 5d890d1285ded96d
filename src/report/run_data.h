// SPDX-License-Identifier: Apache-2.0
// RunData: everything a report can know about a run, read from its directory.
//
// A run that was interrupted leaves files missing or cut off. Reading never fails for that: what cannot be read is left
// out and said in `problems`, one plain sentence each, and the report starts with them.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files/json.h"
#include "eval/metrics.h"
#include "eval/training_set.h"

namespace tritonrl {

// One line of steps.jsonl. Keys are metric paths ("loss", "reward/mean", "time/phase/rollout"); values that are not
// numbers, or are beyond 1e15 either way, are left out.
struct StepLine {
  std::string phase;  // "sft", "rl", ...
  int64_t step = 0;
  std::map<std::string, double> values;
  std::optional<double> get(const std::string& key) const;
};

// What verdicts.jsonl says about one phase ("rl/round1", "eval/base", ...), summed up: the file can be large.
struct PhaseVerdicts {
  std::string phase;
  int64_t verdicts = 0;
  std::map<std::string, int64_t> outcomes;  // By outcome name; harness faults are here, unlike in results.json.
  int64_t rewarded = 0;                     // Lines with a reward.
  double reward_sum = 0;
  int64_t rewarded_faults = 0;  // Harness faults with a reward: must be 0; the report says so loudly when it is not.
};

struct CandidateExample {
  Verdict verdict;
  std::string task_source;
};

struct RunData {
  std::string name;                          // Last part of the directory's path.
  std::vector<std::string> problems;         // What is missing or unreadable.
  std::string config;                        // config.yaml as it is, "" = missing.
  Json env;                                  // env.json, null = missing.
  std::vector<StepLine> steps;               // File order; of lines with the same phase and step only the last is kept.
  std::vector<PhaseVerdicts> verdicts;       // Order of first appearance.
  std::map<std::string, int64_t> paths;      // Where correctness was decided ("interpreter", "replay") -> verdicts.
  std::vector<std::string> sandbox_missing;  // Union over verdicts, sorted.
  std::array<std::vector<double>, kStageCount> stage_seconds;  // Wall clock of each stage that ran, by Stage.
  std::vector<ResultsRow> rows;                                // File order.
  std::vector<RateDifference> comparisons;
  std::optional<CandidateExample> passed, failed;
  std::optional<TrainingSet> training_set;  // Runs of former versions have none.
};

// Throws Error (usage) only when `dir` is no directory.
RunData load_run(const std::filesystem::path& dir);

}  // namespace tritonrl
