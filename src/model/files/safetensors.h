// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files, and joins the shards of a Hugging Face model folder.
//
// Layout: u64 header length, JSON header {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...}, tensor bytes.
// The reader is strict: the tensors must cover the bytes after the header exactly once, or the file is refused with an
// Error (usage) that names file and tensor. Data is mapped, not read: opening costs only the header.
// Goals: everything a model folder holds, no torch. Non-goals: pickles, remote files, writing shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/files/mapped_file.h"

namespace tritonrl {

struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // Row-major. Owned by the file it came from; not always aligned to the element.
  size_t bytes = 0;
};

class SafetensorsFile {
 public:
  // Throws Error (usage) for a missing, truncated or malformed file.
  static SafetensorsFile open(const std::filesystem::path& path);

  std::vector<std::string> names() const;               // Sorted.
  const TensorView* find(std::string_view name) const;  // nullptr when there is none.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  SafetensorsFile(MappedFile file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  MappedFile file_;
  std::filesystem::path path_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

// All tensors of a folder: the shards named by model.safetensors.index.json if there is one, else model.safetensors.
class ModelFiles {
 public:
  // Throws Error (usage) when a shard is missing, a tensor is not where the index says, or two shards hold the same
  // one.
  static ModelFiles open(const std::filesystem::path& folder);

  std::vector<std::string> names() const;  // Sorted.
  const TensorView* find(std::string_view name) const;
  // Throws Error (usage) when the tensor is missing or has another shape.
  const TensorView& require(std::string_view name, const std::vector<int64_t>& shape) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit ModelFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, const TensorView*, std::less<>> tensors_;  // Nodes of shards_' maps: they stay put when moved.
};

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // Row-major, of shape's size. Unused when `fill` is given.
  // Makes the bytes when their turn comes, so that a model need not fit in memory twice.
  std::function<void(std::span<std::byte>)> fill = nullptr;
};

// Writes atomically (temporary file, fsync, rename) and deterministically: wide types first, otherwise in the order
// given. Throws Error (environment). REQUIRES: different names; no negative sizes.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

// "[2, 3]", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace tritonrl
