// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/exclusion.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/secure_hash.h"
#include "base/text.h"

namespace tritonrl {

std::vector<std::string> Exclusion::pairs(const std::vector<Task>& of) const {
  std::vector<std::string> found;
  for (const Task& task : of) {
    auto it = task.level < 2 ? outlines.end() : outlines.find(task.recorded.outline);
    if (it != outlines.end()) found.push_back(cat(task.id, " ~ ", it->second));
  }
  return found;
}

Exclusion load_exclusion(const std::filesystem::path& file) {
  Exclusion out;
  if (file.empty()) return out;
  out.file = file.string();
  for (const Task& task : load_tasks(file)) {
    ++out.tasks;
    out.sources.insert(secure_hash(task.source));
    if (std::max(task.level, task.recorded.level) < 2) continue;
    if (task.recorded.outline.empty()) {
      ++out.unknown;
    } else if (task.recorded.operators.empty()) {  // Outlines of before are others.
      throw usage_error(cat("task '", task.id, "' was recorded by an earlier version"), out.file,
                        "import it again, or record it with `tritonrl data label`");
    } else {
      out.outlines.emplace(task.recorded.outline, task.id);
    }
  }
  out.hash = secure_hash(read_file(file));
  if (out.unknown > 0 && out.outlines.empty()) {
    throw usage_error("no task says what it computes", out.file, "`tritonrl data label` records that");
  }
  return out;
}

}  // namespace tritonrl
