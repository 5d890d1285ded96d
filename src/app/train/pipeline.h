// SPDX-License-Identifier: Apache-2.0
// The main job: tasks -> SFT -> reinforcement learning -> evaluation -> report, in one run directory.
//
// Phases run in order and each is recorded when it is complete, so a run that was stopped continues after the last of
// them.
//
//   data        synthesise, split, verify every solution that will be taught
//   eval/base   held-out tasks, the model as it came
//   sft         -> checkpoints/sft
//   eval/sft
//   rl/step_N   sample, verify, reward, credit, update -> checkpoints/rl_N
//   eval/rl
//   report      results.json, examples.json, report.html, report.md
#pragma once

#include <string>

#include "app/config.h"
#include "base/files/run_dir.h"

namespace tritonrl {

struct TrainOptions {
  bool overwrite = false;    // Start anew where a run of another config (or an old one) is.
  std::string command_line;  // For the report.
};

// Runs what is left to do, if check_can_start (preflight.h) has nothing against it. Returns the run directory. Throws
// Error; throws Interrupted when asked to stop.
std::filesystem::path run_training(const Config& config, const TrainOptions& options);

// What this machine and program are: commit, compiler, libraries, processor, GPU.
Json environment();

}  // namespace tritonrl
