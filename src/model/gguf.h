// SPDX-License-Identifier: Apache-2.0
// Reads GGUF v3 files (llama.cpp's format): typed key-value pairs and block-quantised tensors.
//
// Strict, like the safetensors reader: every length is checked against the file before it is used, tensors may neither
// overlap nor leave the file, and what we do not understand is refused with an Error (usage) that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/mapped_file.h"

namespace tritonrl {

// Numbers as in the file. Only these types can be de-quantised; a file that holds others is refused when opened.
enum class GgufType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
  kBF16 = 30,
};

struct GgufTypeInfo {
  GgufType type;
  std::string_view name;
  size_t block_elements;
  size_t block_bytes;
};

// nullptr for a type we do not read.
const GgufTypeInfo* gguf_type_info(uint32_t type);

// De-quantises `elements` values. Each is exact or rounded once, so the result is the same on every machine.
// REQUIRES: elements is a multiple of the type's block; both buffers are large enough.
void dequantize(GgufType type, const std::byte* blocks, size_t elements, float* out);

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::kF32;
  std::vector<int64_t> shape;  // Slowest first, as torch has it: the reverse of the order in the file.
  const std::byte* data = nullptr;
  size_t bytes = 0;
  size_t elements = 0;
};

// Integers of every width are one of the two 64-bit types; arrays of integers or bools are vector<int64_t>.
using GgufValue = std::variant<bool, uint64_t, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;

class GgufFile {
 public:
  // Throws Error (usage) for a missing, truncated, malformed or unsupported file.
  static GgufFile open(const std::filesystem::path& path);

  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;  // nullptr when there is none.
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  const std::filesystem::path& path() const { return path_; }

  // The value of a key; throws Error (usage) when it is missing or of another type.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  const std::vector<int64_t>& integers(std::string_view key) const;
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }

 private:
  GgufFile(MappedFile file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  const GgufValue& value(std::string_view key) const;

  MappedFile file_;
  std::filesystem::path path_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace tritonrl
