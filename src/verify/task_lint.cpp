// SPDX-License-Identifier: Apache-2.0
#include "verify/task_lint.h"

#include "base/log.h"

namespace tritonrl {

LintReport lint_task(Verifier& verifier, const Task& task, const std::map<std::string, int64_t>& sizes) {
  LintReport report;
  report.task_id = task.id;
  report.level = task.level;
  report.sizes = sizes;
  double start = now_s();
  auto reference = verifier.record(task, {{"full", sizes}});
  if (!reference->failure.empty()) {
    report.flags.push_back({"unrecordable", clean_message(reference->failure)});
  } else {
    TaskFindings found;
    StageEnd ended = verifier.find_flaws(task, sizes, &found);
    for (const auto& [flag, detail] : found.flags) report.flags.push_back({flag, detail});
    if (ended.outcome != Outcome::kPass) {
      bool memory = ended.outcome == Outcome::kOutOfMemory;
      report.flags.push_back({memory ? "out_of_memory" : "fails", clean_message(ended.message)});
    }
    report.controls = found.drops_tried;
  }
  report.seconds = now_s() - start;
  return report;
}

}  // namespace tritonrl
