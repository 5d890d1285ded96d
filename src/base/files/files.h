// SPDX-License-Identifier: Apache-2.0
// Files that survive: errors with a hint, appending whole records, and bringing folders to the disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tritonrl {

// What errno says about `path`, as "cannot <verb>: ..."; with a hint where the disk is full.
Error file_error(const std::string& verb, const std::filesystem::path& path);

// Append-only: each call of write() is one write(2), so concurrent readers see whole records.
class AppendFile {
 public:
  // Creates the file where there is none. Throws Error (environment).
  static AppendFile open(const std::filesystem::path& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // Throws Error (environment) when not everything could be written.
  void write(std::string_view bytes);
  // Brings what was written to the disk. Throws Error (environment).
  void sync();
  const std::string& path() const { return path_; }

 private:
  AppendFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

// Returns false with errno set.
bool write_all(int fd, std::string_view bytes);

// Brings a folder's entries (which names there are) to the disk. Throws Error (environment).
void sync_folder(const std::filesystem::path& folder);
// The folder with every file below it: contents and names. Throws Error (environment).
void sync_tree(const std::filesystem::path& folder);

}  // namespace tritonrl
