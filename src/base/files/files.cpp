// SPDX-License-Identifier: Apache-2.0
#include "base/files/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tritonrl {

namespace fs = std::filesystem;

Error file_error(const std::string& verb, const fs::path& path) {
  int code = errno;
  bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  auto kind = code == ENOENT ? ErrorKind::kUsage : ErrorKind::kEnvironment;
  return Error(kind, "cannot " + verb + ": " + std::strerror(code), path.string(),
               full ? "free some space on that disk, then start again" : "");
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

AppendFile AppendFile::open(const fs::path& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw file_error("open", path);
  return AppendFile(fd, path.string());
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::write(std::string_view bytes) {
  if (!write_all(fd_, bytes)) throw file_error("append to", path_);
}

void AppendFile::sync() {
  if (::fsync(fd_) != 0) throw file_error("write", path_);
}

namespace {

void sync_one(const fs::path& path, int flags) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) throw file_error("open", path);
  int failed = ::fsync(fd), code = errno;
  ::close(fd);
  errno = code;
  if (failed != 0 && code != EINVAL) throw file_error("write", path);  // Some file systems know no fsync of folders.
}

}  // namespace

void sync_folder(const fs::path& folder) { sync_one(folder, O_DIRECTORY); }

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    sync_one(entry.path(), entry.is_directory() ? O_DIRECTORY : 0);
  }
  sync_folder(folder);
}

}  // namespace tritonrl
