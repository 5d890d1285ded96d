// SPDX-License-Identifier: Apache-2.0
#include "base/files/json.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace fs = std::filesystem;

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
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0) {
    sync_folder(path.has_parent_path() ? path.parent_path() : ".");
    return;
  }
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

}  // namespace tritonrl
