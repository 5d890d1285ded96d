// SPDX-License-Identifier: Apache-2.0
// A run's metrics, a line a step: steps.jsonl, and the same numbers in an event file under tensorboard/.
//
// Lines of phase "sft" become tags "sft/loss", ... at their step. A phase with slashes looks closer at a part of
// another's step ("rl/step_3/update"): its tags are "rl_update/loss", ... at a step that counts these lines over the
// whole run. Opening writes the event file anew from steps.jsonl in the place of older ones, so that what is dropped
// there is dropped here, and no step comes twice.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/files/line_file.h"

namespace tritonrl {

class StepLog {
 public:
  // run/steps.jsonl and run/tensorboard/. Throws Error (environment).
  static StepLog open(const std::filesystem::path& run);

  // Adds "time" (seconds since 1970) where it is missing. Throws Error (environment) when it could not be written.
  void write(Json line);

 private:
  StepLog(LineFile lines, AppendFile events) : lines_(std::move(lines)), events_(std::move(events)) {}
  std::string record_of(const Json& line);  // "" = it holds no numbers.
  LineFile lines_;
  AppendFile events_;
  std::map<std::string, int64_t> counted_;  // Tags' prefix -> lines so far.
};

}  // namespace tritonrl
