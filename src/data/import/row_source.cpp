// SPDX-License-Identifier: Apache-2.0
#include "data/import/row_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <regex>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

// Bytes of a descriptor, one at a time, from a buffer.
class ByteStream {
 public:
  ByteStream(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~ByteStream() { ::close(fd_); }
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // -1 at the end.
  int get() {
    if (at_ == size_ && !fill()) return -1;
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  int peek() {
    if (at_ == size_ && !fill()) return -1;
    return static_cast<unsigned char>(buffer_[at_]);
  }

 private:
  bool fill() {
    ssize_t n;
    do n = ::read(fd_, buffer_, sizeof buffer_);
    while (n < 0 && errno == EINTR);
    if (n < 0) throw environment_error(cat("cannot read: ", std::strerror(errno)), name_);
    at_ = 0;
    size_ = static_cast<size_t>(n);
    return n > 0;
  }
  int fd_;
  std::string name_;
  char buffer_[1 << 16];
  size_t at_ = 0, size_ = 0;
};

bool is_space(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Reads up to the end of the line. False at the end of the file; *whole is false when the line was too long to keep.
bool read_line(ByteStream& in, std::string* line, bool* whole) {
  line->clear();
  *whole = true;
  int c = in.get();
  if (c < 0) return false;
  for (; c >= 0 && c != '\n'; c = in.get()) {
    if (line->size() < kMaxRowBytes) {
      *line += static_cast<char>(c);
    } else {
      *whole = false;
    }
  }
  return true;
}

void parse_row(const std::string& text, bool whole, Row* row) {
  row->fields = Json();
  row->kind.clear();
  row->problem.clear();
  if (!whole) {
    row->kind = "too_large";
    row->problem = cat("the row is longer than ", human_bytes(static_cast<double>(kMaxRowBytes)));
    return;
  }
  row->fields = Json::parse(text, nullptr, false);
  if (row->fields.is_discarded()) {
    row->kind = "bad_json";
    row->problem = "the row is not valid JSON";
  } else if (!row->fields.is_object()) {
    row->kind = "bad_row";
    row->problem = "the row is not a JSON object";
  }
}

class JsonLines : public RowSource {
 public:
  explicit JsonLines(std::unique_ptr<ByteStream> in) : in_(std::move(in)) {}
  bool next(Row* row) override {
    bool whole = true;
    while (read_line(*in_, &line_, &whole)) {
      ++number_;
      if (whole && trim(line_).empty()) continue;
      row->number = number_;
      parse_row(line_, whole, row);
      return true;
    }
    return false;
  }

 private:
  std::unique_ptr<ByteStream> in_;
  std::string line_;
  int64_t number_ = 0;
};

// Cuts a JSON array into its elements by counting brackets outside of strings, so that only one is in memory.
class JsonArray : public RowSource {
 public:
  explicit JsonArray(std::unique_ptr<ByteStream> in) : in_(std::move(in)) {
    while (is_space(in_->peek())) in_->get();
    in_->get();  // The bracket.
  }
  bool next(Row* row) override {
    if (ended_) return false;
    std::string text;
    bool whole = true, in_string = false, escaped = false, closed = false;
    int depth = 0;
    for (int c = in_->get();; c = in_->get()) {
      if (c < 0) {
        ended_ = true;
        break;
      }
      if (!in_string && depth == 0 && (c == ',' || c == ']')) {
        ended_ = c == ']';
        closed = true;
        break;
      }
      if (in_string) {
        in_string = escaped || c != '"';
        escaped = !escaped && c == '\\';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        --depth;
      }
      if (text.size() < kMaxRowBytes) {
        text += static_cast<char>(c);
      } else {
        whole = false;
      }
    }
    if (whole && trim(text).empty() && ended_) return false;
    row->number = ++number_;
    parse_row(text, whole, row);
    if (!closed && row->kind.empty()) return true;  // The last one, without its bracket.
    if (!closed) row->problem = "the file ends in the middle of this row";
    return true;
  }

 private:
  std::unique_ptr<ByteStream> in_;
  bool ended_ = false;
  int64_t number_ = 0;
};

// Rows that a Python program reads out of a Parquet file and prints, one JSON object a line: {"row": {...}},
// {"problem": text}, and {"end": true} when all were there.
class ParquetRows : public RowSource {
 public:
  explicit ParquetRows(const fs::path& path)
      : process_(python_command(
            "parquet_rows.py",
            {"--packages", unpacked_package("pyarrow", "convert the file to JSON lines").string(), path.string()})),
        in_(process_.take_output(), path.string()) {
    // The first line says whether the file can be opened.
    Json first = read();
    if (first.contains("fatal")) throw usage_error(first["fatal"].get<std::string>(), path.string());
    if (!first.contains("rows")) throw environment_error("the reader of Parquet gave up", path.string());
  }

  bool next(Row* row) override {
    if (ended_) return false;
    Json said = read();
    row->kind.clear();
    row->problem.clear();
    if (said.contains("end")) {
      ended_ = true;
      return false;
    }
    row->number = ++number_;
    if (said.contains("row")) {
      row->fields = std::move(said["row"]);
      return true;
    }
    ended_ = said.contains("fatal") || !said.contains("problem");
    row->kind = "bad_row";
    row->problem = said.contains("fatal")     ? said["fatal"].get<std::string>()
                   : said.contains("problem") ? said["problem"].get<std::string>()
                                              : "the reader of Parquet ended early";
    return true;
  }

 private:
  Json read() {
    std::string line;
    bool whole = true;
    if (!read_line(in_, &line, &whole)) return Json::object();
    if (!whole) return {{"problem", "the row is too large"}};
    Json said = Json::parse(line, nullptr, false);
    return said.is_object() ? said : Json::object();
  }

  Subprocess process_;
  ByteStream in_;
  bool ended_ = false;
  int64_t number_ = 0;
};

class KernelBenchFolder : public RowSource {
 public:
  explicit KernelBenchFolder(const fs::path& folder) {
    static const std::regex level_name("level([0-9])"), file_name("([0-9]{1,4})_(.+)\\.py");
    for (const auto& level : fs::directory_iterator(folder)) {
      std::smatch level_match, match;
      std::string name = level.path().filename().string();
      if (!level.is_directory() || !std::regex_match(name, level_match, level_name)) continue;
      for (const auto& file : fs::directory_iterator(level.path())) {
        std::string text = file.path().filename().string();
        if (!std::regex_match(text, match, file_name)) continue;
        files_.push_back({std::stoi(level_match[1]), std::stoi(match[1]), match[2], file.path()});
      }
    }
    std::sort(files_.begin(), files_.end(),
              [](const File& a, const File& b) { return std::pair(a.level, a.number) < std::pair(b.level, b.number); });
    if (files_.empty()) {
      throw usage_error("there is no level1/1_Name.py or the like in this folder", folder.string(),
                        "give the folder KernelBench of its repository, which holds level1 to level4");
    }
  }
  bool next(Row* row) override {
    if (at_ == files_.size()) return false;
    const File& file = files_[at_++];
    row->number = static_cast<int64_t>(at_);
    row->kind.clear();
    row->problem.clear();
    row->fields = {{"level", file.level}, {"problem_id", file.number}, {"name", file.name}};
    row->fields["code"] = read_file(file.path);
    return true;
  }

 private:
  struct File {
    int level, number;
    std::string name;
    fs::path path;
  };
  std::vector<File> files_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> open_rows(const fs::path& path) {
  if (fs::is_directory(path)) throw usage_error("is a folder, not a file", path.string());
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw usage_error(cat("cannot read: ", std::strerror(errno)), path.string());
  char head[512];
  ssize_t n = ::pread(fd, head, sizeof head, 0);
  std::string_view start(head, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  auto in = std::make_unique<ByteStream>(fd, path.string());
  if (start.substr(0, 4) == "PAR1") return std::make_unique<ParquetRows>(path);
  size_t first = 0;
  while (first < start.size() && is_space(static_cast<unsigned char>(start[first]))) ++first;
  if (first < start.size() && start[first] == '[') return std::make_unique<JsonArray>(std::move(in));
  return std::make_unique<JsonLines>(std::move(in));
}

std::unique_ptr<RowSource> open_kernelbench_folder(const fs::path& folder) {
  return std::make_unique<KernelBenchFolder>(folder);
}

}  // namespace tritonrl
