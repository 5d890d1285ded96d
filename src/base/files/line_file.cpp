// SPDX-License-Identifier: Apache-2.0
#include "base/files/line_file.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

// The first `most` whole lines of a file: how many there are, and their bytes.
std::pair<int64_t, uint64_t> measure(const fs::path& path, int64_t most) {
  std::ifstream in(path, std::ios::binary);
  int64_t lines = 0;
  uint64_t bytes = 0;
  for (std::string line; lines < most && std::getline(in, line) && !in.eof(); ++lines) bytes += line.size() + 1;
  return {lines, bytes};
}

// Where the last line break ends.
uint64_t end_of_whole_lines(const fs::path& path) {
  constexpr uint64_t kStride = 1 << 16;
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  for (uint64_t end = fs::file_size(path); end > 0;) {
    uint64_t begin = end - std::min(end, kStride);
    bytes.resize(end - begin);
    in.seekg(static_cast<int64_t>(begin));
    if (!in.read(bytes.data(), static_cast<int64_t>(bytes.size()))) throw file_error("read", path);
    if (size_t at = bytes.rfind('\n'); at != std::string::npos) return begin + at + 1;
    end = begin;
  }
  return 0;
}

}  // namespace

LineFile LineFile::open(const fs::path& path) {
  AppendFile file = AppendFile::open(path);
  uint64_t whole = end_of_whole_lines(path);
  if (whole < fs::file_size(path)) fs::resize_file(path, whole);
  return LineFile(path, std::move(file));
}

int64_t LineFile::lines() const { return whole_lines(path_); }

void LineFile::write(const Json& record) { write_lines(json_line(record) + "\n"); }

void LineFile::write_lines(std::string_view whole_lines) { file_.write(whole_lines); }

void LineFile::sync() { file_.sync(); }

void LineFile::keep(int64_t lines) {
  auto [there, bytes] = measure(path_, lines);
  if (there < lines)
    throw usage_error(cat("has ", there, " lines, not the ", lines, " it should have"), path_.string());
  if (bytes < fs::file_size(path_)) fs::resize_file(path_, bytes);
}

void LineFile::keep_if(const std::function<bool(const Json&)>& fn) {
  std::string kept;
  std::ifstream in(path_, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    Json record = Json::parse(line, nullptr, false);
    if (!record.is_discarded() && fn(record)) kept += line + "\n";
  }
  if (kept.size() == fs::file_size(path_)) return;
  write_file(path_, kept);
  file_ = AppendFile::open(path_);
}

int64_t whole_lines(const fs::path& path) { return fs::exists(path) ? measure(path, kAll).first : 0; }

}  // namespace tritonrl
