// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: saved whole or not at all, checked when loaded, thinned out, handed to a user's command.
//
//   checkpoints/sft, checkpoints/rl_N   an adapter in PEFT's layout, the tokenizer's files, sometimes
//                                       optimizer.safetensors, and checkpoint.json: what made it, on which base model,
//                                       and size and hash of every file
//
// A checkpoint is written into NAME.tmp, brought to the disk and renamed; a stop at any moment leaves it whole or
// absent. Step N + 1 continues from rl_N, so rl_N is never removed before step N + 1 is recorded as done.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/config.h"
#include "base/files/run_dir.h"
#include "base/process/background_commands.h"

namespace tritonrl {

class Checkpoints {
 public:
  // Borrows `run`.
  Checkpoints(const CheckpointConfig& config, RunDir& run);
  // Commands that still run get a few seconds.
  ~Checkpoints();

  // Takes up a run: leftovers go, commands that were not run to their end are run (again).
  void resume();

  std::filesystem::path path(const std::string& name) const;
  // write(folder) puts the files of a checkpoint on `model` (a folder) into a folder that is there. Replaces what is
  // there under that name. Throws Error (environment) where it cannot be written: nothing of it is left then.
  void save(const std::string& name, const std::filesystem::path& model,
            const std::function<void(const std::filesystem::path& folder)>& write);

  // Removes those whose name begins with `beginning`, but for the one called `kept`.
  void remove(const std::string& beginning, const std::string& kept = "");

  // Phase "sft" (step 0) or "rl/step_N" is recorded as done, and its checkpoint is there: hands it to the command,
  // notes the best one and removes what is not to be kept. A checkpoint that waits for its command is kept until then.
  void done(int64_t step);
  // An evaluation is recorded as done: notes the best checkpoint where it is chosen by those.
  void evaluation_ended() { note_best(); }
  // Waits for the commands (checkpoint.after_save_wait_s), then removes what is not to be kept.
  void finish();

  // {"name", "step", "reward", "correct_rate"} of the best; null without keep_best, or where no step followed one.
  Json best() const { return run_.noted("best_checkpoint"); }

 private:
  int64_t last_step() const;
  void note_best();
  void prune();
  void announce(int64_t step);
  std::string name_of(int64_t step) const;

  CheckpointConfig config_;
  RunDir& run_;
  std::optional<AppendFile> ended_;  // after_save.jsonl: the commands that were run to their end.
  std::unique_ptr<BackgroundCommands> commands_;
};

// Identifies a model by its config.json and the sizes and beginnings of its weights.
std::string model_fingerprint(const std::filesystem::path& model);

// Is `folder`, where it holds a checkpoint.json, whole and made for `model`? Throws Error (usage) when it is not.
void check_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& model);

}  // namespace tritonrl
