// SPDX-License-Identifier: Apache-2.0
#include "model/int8.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace {

constexpr int64_t kBlockElements = int64_t{1} << 22;  // In float at a time: 16 MiB.
constexpr double kSmallestScale = 1e-30;              // Of a group of zeros, too.

}  // namespace

void check_int8_group(int64_t group, int64_t inputs, const std::string& name) {
  if (group == 0 || (group > 0 && group % 8 == 0 && inputs % group == 0)) return;
  throw usage_error(cat("an int8_group of ", group, " does not fit ", name, ", which has ", inputs, " inputs"), "",
                    "0 (one scale a row) or a multiple of 8 that divides the inputs");
}

Int8Matrix quantize_int8(const at::Tensor& weight, int64_t group, const std::string& name) {
  int64_t n = weight.size(0), k = weight.size(1);
  check_int8_group(group, k, name);
  if (group == 0) group = k;
  int64_t groups = k / group;
  Int8Matrix out{at::empty({n, k}, weight.options().dtype(at::kChar)),
                 at::empty({groups, n}, weight.options().dtype(at::kFloat))};
  int64_t rows = std::max<int64_t>(1, kBlockElements / k);
  for (int64_t begin = 0; begin < n; begin += rows) {
    int64_t end = std::min(n, begin + rows);
    auto block = weight.slice(0, begin, end).to(at::kFloat).reshape({end - begin, groups, group});
    auto scale = block.abs().amax(2, true).mul_(1.0 / 127).clamp_min_(kSmallestScale);
    auto q = at::div(block, scale).round_().clamp_(-127, 127);
    out.q_NK.slice(0, begin, end).copy_(q.view({end - begin, k}));
    out.scale_GN.slice(1, begin, end).copy_(scale.squeeze(2).t());
  }
  if (!at::isfinite(out.scale_GN).all().item<bool>()) throw usage_error(name + " holds weights that are not finite");
  return out;
}

at::Tensor dequantize(const Int8Matrix& matrix, at::ScalarType dtype) {
  at::InferenceMode no_autograd;
  int64_t n = matrix.q_NK.size(0), k = matrix.q_NK.size(1), groups = matrix.scale_GN.size(0);
  auto out = at::empty({n, groups, k / groups}, matrix.q_NK.options().dtype(dtype));
  at::mul_out(out, matrix.q_NK.view({n, groups, k / groups}), matrix.scale_GN.t().unsqueeze(2));
  return out.view({n, k});
}

}  // namespace tritonrl
