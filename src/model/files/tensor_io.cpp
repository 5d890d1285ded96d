// SPDX-License-Identifier: Apache-2.0
#include "model/files/tensor_io.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace {

constexpr std::pair<DType, at::ScalarType> kPairs[] = {
    {DType::kF64, at::kDouble}, {DType::kF32, at::kFloat}, {DType::kF16, at::kHalf},  {DType::kBF16, at::kBFloat16},
    {DType::kI64, at::kLong},   {DType::kI32, at::kInt},   {DType::kI16, at::kShort}, {DType::kI8, at::kChar},
    {DType::kU8, at::kByte},    {DType::kBool, at::kBool},
};

}  // namespace

at::Tensor to_tensor(const TensorView& view) {
  for (const auto& [ours, theirs] : kPairs) {
    if (ours != view.dtype) continue;
    at::Tensor copy = at::empty(view.shape, theirs);
    if (view.bytes != 0) std::memcpy(copy.data_ptr(), view.data, view.bytes);
    return copy;
  }
  throw usage_error("tensor '" + view.name + "' has a dtype that is not supported");
}

TensorToWrite to_write(std::string name, at::Tensor tensor) {
  for (const auto& [ours, theirs] : kPairs) {
    if (theirs != tensor.scalar_type()) continue;
    TensorToWrite out;
    out.name = std::move(name);
    out.dtype = ours;
    out.shape = tensor.sizes().vec();
    out.fill = [tensor = std::move(tensor)](std::span<std::byte> bytes) {
      at::Tensor local = tensor.detach().cpu().contiguous();
      if (!bytes.empty()) std::memcpy(bytes.data(), local.data_ptr(), bytes.size());
    };
    return out;
  }
  throw usage_error(cat("tensor '", name, "': safetensors has no name for ", c10::toString(tensor.scalar_type())));
}

}  // namespace tritonrl
