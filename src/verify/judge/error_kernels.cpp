// SPDX-License-Identifier: Apache-2.0
#include "verify/judge/error_kernels.h"

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "verify/replay/own_kernels.h"
#include "verify/replay/tape.h"

namespace tritonrl {
namespace {

constexpr unsigned kThreads = 256, kBlocksPerProcessor = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// "moments" or "bounded" of kernels.cu, which adds to three 64-bit words.
std::array<uint64_t, 3> run(const char* which, const at::Tensor& truth, const at::Tensor& other, double a = 0,
                            double b = 0, const Slack& slack = {}) {
  CHECK(truth.scalar_type() == at::kDouble && truth.is_contiguous() && other.is_contiguous());
  CHECK(truth.numel() == other.numel());
  static const std::map<at::ScalarType, const char*> types = {
      {at::kFloat, "float"}, {at::kDouble, "double"}, {at::kHalf, "tritonrl::Half"}, {at::kBFloat16, "tritonrl::Bf16"}};
  auto type = types.find(other.scalar_type());
  CHECK(type != types.end()) << "no kernel for " << c10::toString(other.scalar_type());
  static void* const out = [] {
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, sizeof(uint64_t) * 3) == cudaSuccess) << "no GPU memory at all";
    return memory;
  }();
  auto fill = cudaMemsetAsync(out, 0, sizeof(uint64_t) * 3, nullptr);
  CHECK(fill == cudaSuccess) << cudaGetErrorString(fill);
  const void *t = truth.data_ptr(), *x = other.data_ptr();
  void* to = out;
  auto count = static_cast<uint64_t>(truth.numel());
  const void* each = slack.each.defined() ? slack.each.data_ptr() : nullptr;
  auto shift = static_cast<uint32_t>(slack.shift);
  auto first = static_cast<uint64_t>(slack.first);
  void* arguments[] = {&t, &x, &count, &a, &b, &each, &shift, &first, &to};
  const OwnKernels& kernels = OwnKernels::get();
  OwnKernels::launch(kernels.find(cat(which, "<", type->second, ">")), kBlocksPerProcessor * kernels.processors(),
                     kThreads, arguments);
  std::array<uint64_t, 3> words{};
  auto copied = cudaMemcpy(words.data(), out, sizeof words, cudaMemcpyDeviceToHost);
  if (copied != cudaSuccess) throw ReplayFailure{{Rule::kVerifierFailed, cudaGetErrorString(copied)}, true};
  return words;
}

double as_double(uint64_t word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

ErrorMoments error_moments(const at::Tensor& truth, const at::Tensor& other) {
  if (truth.is_cuda()) {
    auto words = run("moments", truth, other);
    return {as_double(words[0]), as_double(words[1]), static_cast<int64_t>(as_double(words[2]))};
  }
  ErrorMoments moments;
  in_chunks(truth.numel(), [&](int64_t at, int64_t n) {
    at::Tensor t = truth.narrow(0, at, n), d = other.narrow(0, at, n).to(at::kDouble, false, true);
    at::Tensor finite = t.isfinite().logical_and_(d.isfinite());
    d = d.sub_(t).masked_fill_(finite.logical_not(), 0);
    at::Tensor clean = t.masked_fill(finite.logical_not(), 0);
    moments.truth_squares += clean.dot(clean).item<double>();
    moments.error_squares += d.dot(d).item<double>();
    moments.finite += finite.sum().item<int64_t>();
  });
  return moments;
}

at::Tensor Slack::of(int64_t from, int64_t count) const {
  int64_t begin = from >> shift, end = (from + count - 1) >> shift;
  at::Tensor whole = each.narrow(0, begin, end - begin + 1).to(at::kDouble).repeat_interleave(int64_t{1} << shift);
  return whole.narrow(0, from - (begin << shift), count);
}

BoundedError bounded_error(const at::Tensor& truth, const at::Tensor& other, double relative, double absolute,
                           const Slack& slack) {
  if (truth.is_cuda()) {
    auto words = run("bounded", truth, other, relative, absolute, slack);
    return {as_double(words[0]), as_double(words[2])};
  }
  BoundedError result;
  in_chunks(truth.numel(), [&](int64_t at, int64_t n) {
    at::Tensor t = truth.narrow(0, at, n), error = at::sub(t, other.narrow(0, at, n));
    result.squares += error.dot(error).item<double>();
    at::Tensor bound = t.abs().mul_(relative).add_(absolute).add_(slack.of(slack.first + at, n));
    double worst = error.abs_().div_(bound).max().item<double>();
    result.worst = std::isfinite(worst) ? std::max(result.worst, worst) : kInfinity;
  });
  return result;
}

}  // namespace tritonrl
