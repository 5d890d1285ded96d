// SPDX-License-Identifier: Apache-2.0
// TaskLint: what makes a task useless. The judge runs its reference on two inputs and its controls, wherever
// candidates are run; the flags are those of verify/judge/task_lint.h and
//
//   unrecordable   the recorder cannot follow it, so no candidate can be judged by it
//   fails          the reference raises, takes too long or returns what cannot be compared
//   out_of_memory  it does not fit into verify.memory_mb, or into the GPU's memory
#pragma once

#include <string>
#include <vector>

#include "verify/verifier.h"

namespace tritonrl {

struct LintFlag {
  std::string flag, detail;
};

struct LintReport {
  std::string task_id;
  int level = 1;
  std::map<std::string, int64_t> sizes;  // What it was run with; empty = as written.
  std::vector<LintFlag> flags;
  int64_t controls = 0;  // Operations that could be left out.
  double seconds = 0;
};

// Blocks. Thread rule: any thread. Throws Error (environment) when worker or judge are lost again and again.
LintReport lint_task(Verifier& verifier, const Task& task, const std::map<std::string, int64_t>& sizes);

}  // namespace tritonrl
