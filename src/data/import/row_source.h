// SPDX-License-Identifier: Apache-2.0
// RowSource: the rows of somebody else's data file, one at a time, whatever state the file is in.
//
// Files may be far larger than memory and broken anywhere: a row that cannot be read is a Row with a `problem`, and the
// next one is read as if nothing had been. Only a file that cannot be opened at all is an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/files/json.h"

namespace tritonrl {

struct Row {
  int64_t number = 0;   // From 1: line of a JSON-lines file, element of an array, row of a table, file of a folder.
  Json fields;          // An object, unless there is a problem.
  std::string kind;     // "" or why the row cannot be read: "bad_json", "too_large", "bad_row".
  std::string problem;  // The same for people.
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // False at the end. Throws Error (environment) when the disk fails.
  virtual bool next(Row* row) = 0;
};

constexpr size_t kMaxRowBytes = size_t{32} << 20;

// Decides by content: Parquet ("PAR1"), a JSON array ("["), else JSON lines. Throws Error (usage) for a missing file
// or one that is no whole Parquet file, (environment) where the reader of Parquet is not installed.
std::unique_ptr<RowSource> open_rows(const std::filesystem::path& path);

// The layout of the KernelBench repository: FOLDER/level*/N_Name.py -> {"level", "problem_id", "name", "code"}, in the
// order of levels and numbers. Throws Error (usage) when there is no such file in the folder.
std::unique_ptr<RowSource> open_kernelbench_folder(const std::filesystem::path& folder);

}  // namespace tritonrl
