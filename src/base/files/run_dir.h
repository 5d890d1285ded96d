// SPDX-License-Identifier: Apache-2.0
// A run directory: everything one run wrote, always readable, also while it is being written.
//
//   config.yaml  resolved           env.json      machine, compiler, libraries, commit
//   steps.jsonl  one line a step    verdicts.jsonl  one line a candidate
//   rollouts/    sampled answers    checkpoints/  adapters in PEFT's layout
//   tensorboard/ steps.jsonl once more, as TensorBoard reads it
//   results.json  report.html  report.md  log.txt
//   state.json   which phases are done; a second start continues after the last of them
//
// Lines of the two .jsonl files name the phase they belong to in "unit" or else "phase"; reopening drops those of
// phases that were not finished, because they will be written again.
#pragma once

#include <filesystem>
#include <string>

#include "base/files/json.h"
#include "base/files/step_log.h"

namespace tritonrl {

class RunDir {
 public:
  // Creates the folder, or reopens it when it was made with the same config (then finished phases are kept).
  // Throws Error (usage) when it holds a run of another config and `overwrite` is false; with overwrite the old one is
  // removed. Throws Error (environment) when it cannot be written.
  static RunDir open(const std::filesystem::path& path, const std::string& config_yaml, bool overwrite);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  bool phase_done(const std::string& phase) const;
  // What mark_done stored for the phase; null when it is not done.
  Json phase_data(const std::string& phase) const;
  // Records that a phase is complete. Atomic.
  void mark_done(const std::string& phase, Json data = Json::object());

  // All that is recorded; and that another process's record takes its place. Atomic.
  const Json& state() const { return state_; }
  void adopt(Json state);

  // A fact about the whole run, beside the phases. Atomic; writes nothing where it is as before.
  void note(const std::string& name, Json value);
  Json noted(const std::string& name) const;  // Null when it never was.

  StepLog& steps() { return steps_; }
  LineFile& verdicts() { return verdicts_; }

 private:
  RunDir(std::filesystem::path path, Json state, StepLog steps, LineFile verdicts);
  std::filesystem::path path_;
  Json state_;
  StepLog steps_;
  LineFile verdicts_;
};

}  // namespace tritonrl
