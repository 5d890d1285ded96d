// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory, and a writer that puts a whole file in place or none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace tritonrl {

class MappedFile {
 public:
  // Throws Error (usage) when the file is missing or a folder, (environment) when it cannot be read.
  static MappedFile open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid while this object, or the one it was moved into, lives. Shortening the file meanwhile ends the process.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Appends bytes to the file being written. Throws Error (environment), e.g. on a full disk.
using AppendBytes = std::function<void(std::span<const std::byte>)>;

// Calls produce(append), then fsyncs and renames into place; on any exception the temporary file is removed.
// For files too large to build in memory; write_file (base/files/json.h) is for the others.
void write_file_in_parts(const std::filesystem::path& path, const std::function<void(const AppendBytes&)>& produce);

}  // namespace tritonrl
