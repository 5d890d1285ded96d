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
    Finding ended = verifier.find_flaws(task, sizes, &found);
    for (const auto& [flag, detail] : found.flags) report.flags.push_back({flag, detail});
    if (!ended.passed()) report.flags.push_back({found.out_of_memory ? "out_of_memory" : "fails", human_text(ended)});
    report.controls = found.drops_tried;
  }
  report.seconds = now_s() - start;
  return report;
}

}  // namespace tritonrl
