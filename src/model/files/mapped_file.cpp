// SPDX-License-Identifier: Apache-2.0
// mmap and atomic writing.
#include "model/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

Error system_error(const char* verb, const std::filesystem::path& path) {
  int code = errno;
  std::string hint;
  if (code == ENOSPC || code == EDQUOT) hint = "free some disk space and run again; the old file, if any, is untouched";
  return environment_error(cat("cannot ", verb, " the file: ", std::strerror(code)), path.string(), hint);
}

}  // namespace

MappedFile MappedFile::open(const std::filesystem::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw usage_error("no such file", path.string(), "check the path");
    throw system_error("open", path);
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw usage_error("not a regular file", path.string(), "give the path of a file, not of a folder");
  }
  size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    return MappedFile(nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int code = errno;
  ::close(fd);
  errno = code;
  if (data == MAP_FAILED) throw system_error("map", path);
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void write_file_in_parts(const std::filesystem::path& path, const std::function<void(const AppendBytes&)>& produce) {
  std::filesystem::path temporary = path;
  temporary += cat(".tmp", ::getpid());
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw system_error("create", temporary);
  try {
    produce([&](std::span<const std::byte> bytes) {
      while (!bytes.empty()) {
        ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw system_error("write", path);
        bytes = bytes.subspan(static_cast<size_t>(n));
      }
    });
    if (::fsync(fd) != 0) throw system_error("write", path);
    ::close(std::exchange(fd, -1));
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw system_error("rename into place", path);
  } catch (const std::exception&) {
    if (fd >= 0) ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace tritonrl
