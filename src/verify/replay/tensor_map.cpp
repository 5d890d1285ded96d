// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/tensor_map.h"

#include <cstring>

#include "base/text.h"
#include "verify/replay/tape.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxRank = 5;
constexpr int64_t kAlignment = 16;                // Of addresses, strides and the box's rows; bytes.
constexpr int64_t kMaxBox = 256;                  // Elements a dimension.
constexpr int64_t kMaxStride = int64_t{1} << 40;  // Bytes.
constexpr int kSwizzles = 4;                      // None, 32, 64, 128 bytes.
constexpr int kDriverTypes = 13;                  // Those without sub-byte elements.

[[noreturn]] void tampered(const std::string& message) { throw ReplayFailure{{Rule::kForgedResult, message}}; }
[[noreturn]] void refused(const std::string& message) { throw ReplayFailure{{Rule::kKernelFailed, message}}; }

// Triton's metadata numbers element types as the device does; the driver's three at 8 to 10 are in another order.
int driver_type(int64_t type) { return type == 8 ? 10 : type == 9 ? 8 : type == 10 ? 9 : static_cast<int>(type); }

int64_t integer(const Json& json, const char* key, int64_t low, int64_t high) {
  auto it = json.find(key);
  bool is_integer = it != json.end() && it->is_number_integer() &&
                    (!it->is_number_unsigned() || it->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!is_integer) tampered(cat("a descriptor's metadata lacks the integer ", key));
  auto value = it->get<int64_t>();
  if (value < low || value > high) tampered(cat("a descriptor's ", key, " is ", value));
  return value;
}

TmaMetadata one_metadata(const Json& json) {
  if (!json.is_object()) tampered("a descriptor's metadata is no object");
  auto padded = json.find("fp4_padded");
  if (padded == json.end() || !padded->is_boolean()) tampered("a descriptor's metadata lacks fp4_padded");
  if (padded->get<bool>()) throw ReplayFailure{{Rule::kNotReplayable, "descriptors of 4-bit elements"}};
  TmaMetadata out;
  out.swizzle = static_cast<int>(integer(json, "swizzle", 0, kSwizzles - 1));
  out.elem_size = static_cast<int>(integer(json, "elem_size", 1, 8));
  out.elem_type = driver_type(integer(json, "elem_type", 0, kDriverTypes - 1));
  auto block = json.find("block_size");
  if (block == json.end() || !block->is_array() || block->empty() || block->size() > kMaxRank) {
    tampered("a descriptor's metadata lacks a block_size of 1 to 5 dimensions");
  }
  for (const Json& size : *block) {
    if (!size.is_number_integer() || size < 1 || size > kMaxBox) tampered("a descriptor's block has a bad size");
    out.block.push_back(size.get<int64_t>());
  }
  return out;
}

template <class T>
std::string bytes_of_number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::vector<std::optional<TmaMetadata>> tma_metadata(const Json& json, size_t count) {
  std::vector<std::optional<TmaMetadata>> out(count);
  if (!json.is_array()) tampered("descriptors' metadata are no list");
  if (json.empty()) return out;
  if (json.size() != count) tampered("a kernel has other descriptors than its metadata");
  for (size_t i = 0; i < count; ++i) out[i] = one_metadata(json[i]);
  return out;
}

Descriptor descriptor_of(const TraceArg& arg) {
  if (arg.kind != TraceArg::Kind::kDescriptor || arg.list.size() != 4) tampered("a malformed descriptor");
  auto sizes = [](const TraceArg& list) {
    std::vector<int64_t> out;
    for (const TraceArg& one : list.list) out.push_back(one.number);
    return out;
  };
  Descriptor out{sizes(arg.list[0]), sizes(arg.list[1]), arg.list[3].number != 0};
  size_t rank = out.shape.size();
  if (rank == 0 || rank > kMaxRank || out.strides.size() != rank)
    tampered("a descriptor of 0 or more than 5 dimensions");
  for (size_t i = 0; i < rank; ++i) {
    if (out.shape[i] < 1 || out.strides[i] < 0) tampered("a descriptor of no elements");
    if (out.shape[i] > INT32_MAX) refused("a descriptor's dimension is larger than 2^31 - 1");
  }
  if (out.strides.back() != 1) tampered("a descriptor whose last dimension is not contiguous");
  return out;
}

void check_reach(const Descriptor& descriptor, int64_t element_bytes, uint64_t address, int64_t bytes) {
  if (address % kAlignment != 0) refused("a descriptor's base must be 16-byte aligned");
  __int128 last = 0;
  for (size_t i = 0; i < descriptor.shape.size(); ++i) {
    __int128 stride = static_cast<__int128>(descriptor.strides[i]) * element_bytes;
    if (i + 1 < descriptor.shape.size()) {
      if (stride % kAlignment != 0) tampered("a descriptor's strides must be 16-byte aligned");
      if (stride >= kMaxStride) refused("a descriptor's stride is 2^40 bytes or more");
    }
    last += (descriptor.shape[i] - 1) * stride;
  }
  if (last + element_bytes > bytes) refused("a descriptor reaches beyond its tensor's memory");
}

TensorMapRequest tensor_map_request(const Descriptor& descriptor, const TmaMetadata& metadata, int64_t element_bytes) {
  size_t rank = descriptor.shape.size();
  if (metadata.block.size() != rank) tampered("a descriptor has another rank than its kernel was compiled for");
  if (metadata.elem_size != element_bytes) tampered("a descriptor's elements have another size than its tensor's");
  if (metadata.block.back() * metadata.elem_size % kAlignment != 0) {
    refused("the rows of a descriptor's block are no multiple of 16 bytes");
  }
  TensorMapRequest out;
  out.rank = static_cast<uint32_t>(rank);
  out.elem_type = metadata.elem_type;
  out.swizzle = metadata.swizzle;
  out.pads_with_nan = descriptor.pads_with_nan;
  for (size_t i = 0; i < rank; ++i) {
    size_t from = rank - 1 - i;
    out.dims[i] = static_cast<uint64_t>(descriptor.shape[from]);
    out.box[i] = static_cast<uint32_t>(metadata.block[from]);
    if (i > 0) out.strides[i - 1] = static_cast<uint64_t>(descriptor.strides[from] * element_bytes);
  }
  out.strides[rank - 1] =
      out.dims[rank - 1] * (rank == 1 ? static_cast<uint64_t>(element_bytes) : out.strides[rank - 2]);
  return out;
}

std::vector<std::string> descriptor_parameters(const Descriptor& descriptor, uint64_t address,
                                               const std::string* tensor_map) {
  std::vector<std::string> out;
  if (tensor_map) {
    out.push_back(*tensor_map);
  } else {
    out.push_back(bytes_of_number(address));
    for (int64_t size : descriptor.shape) out.push_back(bytes_of_number(size));
    for (int64_t stride : descriptor.strides) out.push_back(bytes_of_number(stride));
    out.push_back(bytes_of_number(static_cast<int8_t>(descriptor.pads_with_nan)));
  }
  for (int64_t size : descriptor.shape) out.push_back(bytes_of_number(static_cast<int32_t>(size)));
  for (int64_t stride : descriptor.strides) out.push_back(bytes_of_number(stride));
  return out;
}

}  // namespace tritonrl
