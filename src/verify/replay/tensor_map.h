// SPDX-License-Identifier: Apache-2.0
// TensorMap: what Triton's launcher makes of a TensorDescriptor argument, without CUDA. A `tensordesc<...>` of a
// kernel's signature becomes several kernel parameters:
//
//   with TMA metadata   tensor map (128 bytes, made by cuTensorMapEncodeTiled), shape (i32 each), strides (i64 each)
//   without             pointer, shape and strides (i64 each), padding (i1), shape (i32 each), strides (i64 each)
//
// Everything comes from a tainted trace. What Python's own TensorDescriptor never lets through is `tampered`; what a
// real launch would refuse, or read from memory that is not the tensor's, is `runtime_error`. All functions throw
// ReplayFailure and nothing else. Thread rule: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verify/trace/trace.h"

namespace tritonrl {

// A descriptor argument; outermost dimension first, in elements.
struct Descriptor {
  std::vector<int64_t> shape, strides;
  bool pads_with_nan = false;
};

// Triton's metadata of one descriptor parameter.
struct TmaMetadata {
  int swizzle = 0, elem_size = 0, elem_type = 0;  // elem_type as the driver numbers it (CUtensorMapDataType).
  std::vector<int64_t> block;                     // Outermost dimension first.
};

// Arguments of cuTensorMapEncodeTiled: innermost dimension first.
struct TensorMapRequest {
  uint32_t rank = 0;
  int elem_type = 0, swizzle = 0;
  bool pads_with_nan = false;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 5> strides{};  // Bytes; strides[i] is that of dimension i + 1, the last is not used.
  std::array<uint32_t, 5> box{};
};

// One entry for each of a signature's `count` descriptors, in order; empty where the kernel was lowered without TMA.
std::vector<std::optional<TmaMetadata>> tma_metadata(const Json& json, size_t count);

Descriptor descriptor_of(const TraceArg& arg);

// May the descriptor be laid over `bytes` bytes of memory at `address`, in elements of `element_bytes`?
void check_reach(const Descriptor& descriptor, int64_t element_bytes, uint64_t address, int64_t bytes);

TensorMapRequest tensor_map_request(const Descriptor& descriptor, const TmaMetadata& metadata, int64_t element_bytes);

// The bytes of each kernel parameter, in order; `tensor_map` null: without TMA.
std::vector<std::string> descriptor_parameters(const Descriptor& descriptor, uint64_t address,
                                               const std::string* tensor_map);

}  // namespace tritonrl
