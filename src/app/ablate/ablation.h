// SPDX-License-Identifier: Apache-2.0
// Ablation: a matrix of configs x seeds, each cell a run of its own, and what the axes do to the results.
//
// One YAML file (configs/ablate/extensions.yaml is the shipped one; paths are relative to it):
//
//   name: extensions
//   folder: runs                                  # cells are runs/extensions/CELL
//   base: [../gpu.yaml, none.yaml]                # every cell's config begins with these files
//   axes:
//     multi_input: ["off", "on = multi_input.yaml"]
//     reward: [staged, binary = reward.shape=binary]    # overlays: files, or key=value; several with commas
//   seeds: [1]                                    # of every cell (run.seed)
//   corner_seeds: [1, 2, 3]                       # of the two cells with every axis at its first, or last, value
//
// An axis's first value is what the others are held against. Two axes must not set the same key. What every cell begins
// with (tasks, the base model's evaluation, supervised fine-tuning) is run once, under `base` and the first seed, and
// taken over by the cells whose config agrees with it there. Every cell is evaluated with every extension on
// (eval.verifier: full) and says how much of what its own verifier accepted while it trained that one rejects.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json.h"
#include "eval/effects.h"
#include "eval/metrics.h"

namespace tritonrl {

struct AblationAxis {
  struct Value {
    std::string name;
    std::vector<std::string> files, sets;
  };
  std::string name;
  std::vector<Value> values;  // Two or more.
};

struct AblationCell {
  std::string name;  // "multi_input-on_reward-staged_seed-1"; "shared" for what all begin with.
  AxisValues setting;
  int64_t seed = 1;
  std::vector<std::string> files, sets;  // Its config, as `tritonrl train` takes it.
  std::filesystem::path folder;          // Its run directory.
};

struct Ablation {
  std::string name;
  std::filesystem::path folder;
  std::vector<AblationAxis> axes;
  AblationCell shared;
  std::vector<AblationCell> cells;
};

// Reads and checks the whole matrix: every cell's config loads. `sets` go to all cells. Throws Error (usage): an
// unknown key, axes that contradict each other, a value without overlays that is not the first, a cell's config that is
// wrong.
Ablation load_ablation(const std::filesystem::path& file, const std::vector<std::string>& sets);

struct AblationOptions {
  std::filesystem::path program;  // tritonrl itself.
  int64_t jobs = 0;               // Cells at a time; 0 = one a GPU, or one.
  std::string only;               // Cells whose name holds this text.
};

// Runs the cells that are not done, each as a process with its own log (CELL/log.txt and CELL.out); resumes those
// that were stopped. A cell that fails is reported and the others run. Throws Interrupted.
void run_cells(const Ablation& ablation, const AblationOptions& options);

// What one cell came to; `status` is "done", "failed" (it ran and left no results) or "missing".
struct CellResult {
  const AblationCell* cell = nullptr;
  std::string status;
  // Measure -> task -> value: "correct_1", "correct_2" (share of a held-out task's samples), "log_speedup" (mean over
  // its correct, timed samples); under the task "": "verify_seconds" (a candidate, while training), "false_accepts"
  // (share of what training accepted).
  std::map<std::string, std::map<std::string, double>> measures;
  // Correct after RL minus correct at its start (after SFT, or the base model), a level each and over all.
  std::vector<RateDifference> gains;
  // Level ("1", "2") -> RL step -> share of held-out samples that are correct; step 0 is the start. Of a cell that is
  // not done: as far as it got.
  std::map<std::string, std::map<int64_t, double>> heldout;
};
std::vector<CellResult> collect(const Ablation& ablation);

struct MeasuredEffect {
  std::string measure;
  Effect effect;
  std::string sentence;  // "multi_input on improves ...: +3.1 points (...)" or "...: no measurable effect on ...".
};
// Main effects of every value of every axis against its first, then interactions of all pairs of those, per measure.
std::vector<MeasuredEffect> effects_of(const Ablation& ablation, const std::vector<CellResult>& results);

// Writes ablation.json, ablation.md and ablation.html into the ablation's folder.
void write_ablation(const Ablation& ablation, const std::vector<CellResult>& results,
                    const std::vector<MeasuredEffect>& effects);

}  // namespace tritonrl
