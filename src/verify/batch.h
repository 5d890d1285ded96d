// SPDX-License-Identifier: Apache-2.0
// Batch: `tritonrl verify --batch jobs.jsonl --out verdicts.jsonl`.
//
// A job is one line {"id": text, "task": path or {"code": text}, "candidate": path or {"code": text} or {"text":
// text}}. Paths are relative to the jobs file. An inline task may also have "id", "level", "tiny" and "larger" as in a
// task file. A candidate file ending in .py, and "code", is code as it stands; any other file, and "text", is a
// policy's answer with a fenced block in it. Verdicts are appended as they are reached, one line each, so a batch that
// was stopped continues where it was: ids that the output holds already are skipped.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "verify/verifier.h"

namespace tritonrl {

// Reads and checks all jobs before any is run. Throws Error (usage) with file:line for a bad one or a repeated id.
std::vector<Candidate> load_jobs(const std::filesystem::path& jobs);

struct BatchResult {
  int64_t total = 0;    // Jobs in the file.
  int64_t skipped = 0;  // Found in the output already.
  int64_t correct = 0;  // Of all in the output, these jobs' verdicts.
  // Answers without a fenced block that are Python files themselves: no_code, and perhaps meant as "code". A warning
  // says so.
  int64_t unfenced = 0;
};

// Blocks. Throws Error for bad jobs, an output that cannot be read or written, or an incomplete environment.
BatchResult run_batch(Verifier& verifier, const std::filesystem::path& jobs, const std::filesystem::path& out,
                      const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace tritonrl
