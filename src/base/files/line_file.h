// SPDX-License-Identifier: Apache-2.0
// LineFile: an append-only file of lines (JSON, one a line) that continues after any stop.
//
// Each record goes out in one write(2), so concurrent readers see whole lines. A kill or a full disk may leave the last
// line cut: opening cuts it off, so that what is there is whole lines and what it spoke of is done again.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "base/files/json.h"

namespace tritonrl {

class LineFile {
 public:
  // Opens for appending (creates the file), without a cut last line. Throws Error (environment).
  static LineFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  int64_t lines() const;  // Reads the file.
  // Calls fn(line_number, value) for each line. Throws Error with "path:line" for a line that is not JSON.
  void for_each(const std::function<void(int64_t, const Json&)>& fn) const { for_each_json_line(path_, fn); }

  // Throw Error (environment) when not everything could be written.
  void write(const Json& record);
  void write_lines(std::string_view whole_lines);
  void sync();  // Brings what was written to the disk.

  // Cuts the file behind its first `lines` lines. Throws Error (usage) when it has fewer.
  void keep(int64_t lines);
  // Drops the lines that are no JSON or for which fn says false; the file is replaced at once (write_file).
  void keep_if(const std::function<bool(const Json&)>& fn);

 private:
  LineFile(std::filesystem::path path, AppendFile file) : path_(std::move(path)), file_(std::move(file)) {}
  std::filesystem::path path_;
  AppendFile file_;
};

// Lines that end with a line break; 0 where there is no file.
int64_t whole_lines(const std::filesystem::path& path);

}  // namespace tritonrl
