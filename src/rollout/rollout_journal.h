// SPDX-License-Identifier: Apache-2.0
// RolloutJournal: answers and verdicts on disk as they come, so that sampling and verifying that was stopped continues
// behind the last of them.
//
//   RolloutJournal journal(file, "rl/step_3 ...");  // with what an earlier process left there of the same work
//   journal.answer(1, i)                            // null = not drawn yet
//   journal.note(1, i, answer);
//   journal.remove();                               // once the rollouts are kept elsewhere
//
// Entries are known by their turn and the position of their candidate in it. Every draw has a stream of its own
// (policy/generate.h), so what is still missing comes out as it would have. The first line says what work it is; the
// journal of other work is begun anew. A last line that was cut by a kill is dropped.
// Thread rule: any thread. What answer() and verdict() point to stays as it is.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/files/line_file.h"
#include "policy/generate.h"
#include "verify/verdict.h"

namespace tritonrl {

class RolloutJournal {
 public:
  // Creates folders as needed. Throws Error (environment).
  RolloutJournal(std::filesystem::path file, const std::string& work);

  const Generated* answer(int64_t turn, size_t candidate) const;
  const Verdict* verdict(int64_t turn, size_t candidate) const;
  // What the journal held when it was opened.
  int64_t answers_found() const { return answers_found_; }
  int64_t verdicts_found() const { return verdicts_found_; }

  // Throw Error (environment) when they cannot be written. A harness fault is not noted: it is tried again.
  void note(int64_t turn, size_t candidate, const Generated& answer);
  void note(int64_t turn, size_t candidate, const Verdict& verdict);

  // Brings what is noted to the disk. Throws Error (environment).
  void sync();
  void remove();

 private:
  using Key = std::pair<int64_t, size_t>;
  // Returns whether the file holds this work.
  bool take_over(const Json& head);
  void write(const Json& line);

  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::optional<LineFile> out_;
  std::map<Key, Generated> answers_;
  std::map<Key, Verdict> verdicts_;
  int64_t answers_found_ = 0, verdicts_found_ = 0;
};

}  // namespace tritonrl
