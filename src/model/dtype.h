// SPDX-License-Identifier: Apache-2.0
// Element types of stored tensors, and exact conversions between float, half and bfloat16. No torch in here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace tritonrl {

enum class DType { kF64, kI64, kU64, kF32, kI32, kU32, kF16, kBF16, kI16, kU16, kI8, kU8, kF8E4M3, kF8E5M2, kBool };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // As safetensors spells it.
  size_t bytes;           // Of one element.
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::kF64, "F64", 8},        {DType::kI64, "I64", 8},        {DType::kU64, "U64", 8},
    {DType::kF32, "F32", 4},        {DType::kI32, "I32", 4},        {DType::kU32, "U32", 4},
    {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},      {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},        {DType::kI8, "I8", 1},          {DType::kU8, "U8", 1},
    {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kBool, "BOOL", 1},
};

constexpr size_t dtype_bytes(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }
constexpr std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

constexpr std::optional<DType> dtype_of(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

// Unaligned little-endian load.
template <class T>
T load_le(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little, "model files are little-endian");
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace tritonrl
