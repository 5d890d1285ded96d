// SPDX-License-Identifier: Apache-2.0
// What a run trains on, held against the benchmark that it must not have seen (data.exclude), and written down.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "app/config.h"
#include "data/tasks/exclusion.h"
#include "data/tasks/split.h"
#include "eval/training_set.h"
#include "verify/verifier.h"

namespace tritonrl {

// Tasks of level 2 and above that come from files and were never recorded are recorded now, where something is
// excluded: `verifier` is asked for then. Throws Error (usage) that names the pairs when such a task has an excluded
// graph. Blocks.
TrainingSet check_training(const Config& config, const Exclusion& exclusion, Splits* splits,
                           const std::function<Verifier&()>& verifier);

// Of the run that a checkpoint folder lies in (RUN/checkpoints/NAME); empty where it lies in none.
std::optional<TrainingSet> training_set_of_checkpoint(const std::filesystem::path& folder);

// For a row of an evaluation on `tasks`: what split_by_teaching() fills in, and compared_with_training. Warns when a
// task was not compared.
void note_training(const TrainingSet& set, const std::vector<Task>& tasks, const std::vector<EvalRecord>& records,
                   ResultsRow* row);

}  // namespace tritonrl
