// SPDX-License-Identifier: Apache-2.0
// ImportJob: rows -> OUT.jsonl and OUT.rejected.jsonl, window by window, so that any file fits in memory.
//
// While it runs, what is done lies in OUT.jsonl.part and OUT.rejected.jsonl.part, and OUT.jsonl.state says how many
// rows and bytes of them count; it is replaced after every window. Started again with the same arguments, a job that
// was stopped continues after the last whole window. Both files get their names at the end, in one rename each.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/import/import.h"

namespace tritonrl {

// What becomes of converted tasks: each may be changed (levels, hashes), or rejected by setting kind and reason.
// Blocks.
using ImportJudge = std::function<void(std::vector<Converted>& converted)>;

struct ImportOptions {
  std::filesystem::path out;  // Ends in .jsonl.
  std::string identity;       // Of the source and of how it is imported; a state of another identity is refused.
  size_t window = 64;         // Rows judged together.
  bool overwrite = false;     // Replace OUT.jsonl and drop what a stopped job left.
};

struct ImportCounts {
  int64_t rows = 0, kept = 0;
  int64_t resumed_at = 0;                // Rows that an earlier start had done.
  std::map<std::string, int64_t> kinds;  // Rejected, by kind.
};

// The side file of rejections: "tasks.jsonl" -> "tasks.rejected.jsonl".
std::filesystem::path rejected_file(const std::filesystem::path& out);

// Throws Error (usage) when OUT.jsonl is there already or the state is of another import; (environment) when the disk
// fails; Interrupted when asked to stop.
ImportCounts run_import(RowSource& rows, const Converter& convert, const ImportJudge& judge,
                        const ImportOptions& options, const std::function<void(const ImportCounts&)>& progress = {});

}  // namespace tritonrl
