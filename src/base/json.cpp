// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

namespace {

Error file_error(const std::string& verb, const fs::path& path) {
  int code = errno;
  std::string hint = code == ENOSPC ? "free some space on that disk, then start again" : "";
  auto kind = code == ENOENT ? ErrorKind::kUsage : ErrorKind::kEnvironment;
  return Error(kind, "cannot " + verb + ": " + std::strerror(code), path.string(), hint);
}

// Returns false with errno set.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string read_file(const fs::path& path) {
  if (fs::is_directory(path)) throw usage_error("is a folder, not a file", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) throw file_error("read", path);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw file_error("read", path);
  return bytes;
}

void write_file(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += cat(".tmp", ::getpid());
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw file_error("create", temporary);
  bool ok = write_all(fd, bytes) && ::fsync(fd) == 0;
  int code = errno;
  ::close(fd);
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  if (!ok) errno = code;
  auto error = file_error("write", path);
  ::unlink(temporary.c_str());
  throw error;
}

Json read_json(const fs::path& path) {
  std::string text = read_file(path);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw usage_error(cat("is not valid JSON at byte ", e.byte), path.string());
  }
}

void for_each_json_line(const fs::path& path, const std::function<void(int64_t, const Json&)>& fn) {
  if (!fs::exists(path)) throw usage_error("no such file", path.string());
  if (fs::is_directory(path)) throw usage_error("is a folder, not a file", path.string());
  std::ifstream in(path);
  if (!in) throw file_error("read", path);
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (trim(line).empty()) continue;
    Json value = Json::parse(line, nullptr, false);
    if (value.is_discarded()) throw usage_error("line is not valid JSON", cat(path.string(), ":", number));
    fn(number, value);
  }
}

std::string json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

JsonLinesWriter JsonLinesWriter::open(const fs::path& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw file_error("open", path);
  return JsonLinesWriter(fd, path.string());
}

JsonLinesWriter::JsonLinesWriter(JsonLinesWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

JsonLinesWriter& JsonLinesWriter::operator=(JsonLinesWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

JsonLinesWriter::~JsonLinesWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void JsonLinesWriter::write(const Json& record) {
  if (!write_all(fd_, json_line(record) + "\n")) throw file_error("append to", path_);
}

}  // namespace tritonrl
