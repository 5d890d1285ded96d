// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/error_kernels.h"

#include <ATen/ATen.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "verify/gpu/driver.h"

namespace tritonrl {
namespace {

constexpr unsigned kThreads = 256, kBlocksPerProcessor = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- Kernels: (truth, other, count, a, b, out of three 64-bit words).

// Into %x, as float64, the element whose address is %other.
std::string load(at::ScalarType dtype) {
  if (dtype == at::kDouble) return "  ld.global.f64 %x, [%other];\n";
  if (dtype == at::kFloat) return "  ld.global.f32 %narrow, [%other];\n  cvt.f64.f32 %x, %narrow;\n";
  if (dtype == at::kHalf) return "  ld.global.b16 %half, [%other];\n  cvt.f64.f16 %x, %half;\n";
  CHECK(dtype == at::kBFloat16) << "a floating dtype without a kernel: " << c10::toString(dtype);
  return "  ld.global.b16 %half, [%other];\n  mov.b32 %narrow, {%zero, %half};\n  cvt.f64.f32 %x, %narrow;\n";
}

// Each: what happens to one element, given %t, %x, %e = %x - %t, %m = |%t|.
constexpr const char* kMoments = R"(
  abs.f64 %q, %x;
  setp.lt.f64 %p, %q, 0d7FF0000000000000;
  setp.lt.and.f64 %p, %m, 0d7FF0000000000000, %p;
  @%p fma.rn.f64 %s0, %t, %t, %s0;
  @%p fma.rn.f64 %s1, %e, %e, %s1;
  @%p add.f64 %s2, %s2, 0d3FF0000000000000;
)";
constexpr const char* kWorst = R"(
  add.f64 %q, %m, %a;
  abs.f64 %e, %e;
  div.rn.f64 %q, %e, %q;
  setp.lt.f64 %p, %q, 0d7FF0000000000000;
  @%p max.f64 %s2, %s2, %q;
)";
constexpr const char* kBounded = R"(
  fma.rn.f64 %s0, %e, %e, %s0;
  fma.rn.f64 %q, %m, %a, %b;
  abs.f64 %e, %e;
  div.rn.f64 %q, %e, %q;
  setp.lt.f64 %p, %q, 0d7FF0000000000000;
  selp.f64 %q, %q, 0d7FF0000000000000, %p;
  max.f64 %s2, %s2, %q;
)";

// Adds or takes the larger of %s<i> over the warp's lanes, then of the warps.
std::string reduce(int i, bool is_sum) {
  std::string s = cat("%s", i), text;
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    text += cat("  mov.b64 {%low, %high}, ", s, ";\n");
    for (const char* half : {"%low", "%high"}) {
      text += cat("  shfl.sync.down.b32 ", half, ", ", half, ", ", lanes, ", 31, 0xffffffff;\n");
    }
    text += cat("  mov.b64 %q, {%low, %high};\n  ", is_sum ? "add" : "max", ".f64 ", s, ", ", s, ", %q;\n");
  }
  if (is_sum) return text + cat("  @%first red.global.add.f64 [%out+", 8 * i, "], ", s, ";\n");
  // Numbers that are not negative are in the order of their bits.
  return text + cat("  mov.b64 %i, ", s, ";\n  @%first red.global.max.u64 [%out+", 8 * i, "], %i;\n");
}

std::string kernel(const std::string& name, at::ScalarType dtype, const char* each, const std::string& end) {
  return cat(".visible .entry ", name,
             "(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .f64 p3, .param .f64 p4, .param .u64 p5)\n{\n",
             R"(  .reg .pred %p, %first;
  .reg .b16 %half, %zero;
  .reg .b32 %thread, %block, %threads, %blocks, %low, %high, %lane;
  .reg .f32 %narrow;
  .reg .b64 %truths, %others, %count, %out, %i, %step, %truth, %other;
  .reg .f64 %a, %b, %t, %x, %e, %m, %q, %s0, %s1, %s2;
  ld.param.u64 %truths, [p0];
  ld.param.u64 %others, [p1];
  ld.param.u64 %count, [p2];
  ld.param.f64 %a, [p3];
  ld.param.f64 %b, [p4];
  ld.param.u64 %out, [p5];
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  and.b32 %lane, %thread, 31;
  setp.eq.u32 %first, %lane, 0;
  mov.b16 %zero, 0;
  mad.lo.u32 %thread, %block, %threads, %thread;
  mul.lo.u32 %threads, %threads, %blocks;
  cvt.u64.u32 %i, %thread;
  cvt.u64.u32 %step, %threads;
  mov.f64 %s0, 0d0000000000000000;
  mov.f64 %s1, %s0;
  mov.f64 %s2, %s0;
LOOP:
  setp.ge.u64 %p, %i, %count;
  @%p bra DONE;
  shl.b64 %truth, %i, 3;
  add.u64 %truth, %truth, %truths;
  mad.lo.u64 %other, %i, )",
             c10::elementSize(dtype), R"(, %others;
  ld.global.f64 %t, [%truth];
)",
             load(dtype), R"(  sub.f64 %e, %x, %t;
  abs.f64 %m, %t;)",
             each, R"(  add.u64 %i, %i, %step;
  bra LOOP;
DONE:
)",
             end, "  ret;\n}\n");
}

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
constexpr const char* kNames[] = {"moments", "worst", "bounded"};

class Kernels {
 public:
  static const Kernels& get() {
    static Kernels kernels;
    return kernels;
  }

  std::array<uint64_t, 3> run(size_t which, const at::Tensor& truth, const at::Tensor& other, double a,
                              double b) const {
    CHECK(truth.scalar_type() == at::kDouble && truth.is_contiguous() && other.is_contiguous());
    CHECK(truth.numel() == other.numel());
    const CudaDriver& driver = CudaDriver::get();
    auto fill = cudaMemsetAsync(out_, 0, sizeof(uint64_t) * 3, nullptr);
    CHECK(fill == cudaSuccess) << cudaGetErrorString(fill);
    auto dtype = static_cast<size_t>(std::find(std::begin(kDtypes), std::end(kDtypes), other.scalar_type()) - kDtypes);
    CHECK(dtype < std::size(kDtypes)) << "no kernel for " << c10::toString(other.scalar_type());
    auto t = reinterpret_cast<CUdeviceptr>(truth.data_ptr()), x = reinterpret_cast<CUdeviceptr>(other.data_ptr());
    auto count = static_cast<uint64_t>(truth.numel());
    auto out = reinterpret_cast<CUdeviceptr>(out_);
    void* arguments[] = {&t, &x, &count, &a, &b, &out};
    CUlaunchConfig config{};
    config.gridDimX = blocks_;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = kThreads;
    config.blockDimY = config.blockDimZ = 1;
    driver.check(driver.launch(&config, functions_[which][dtype], arguments, nullptr), "comparing");
    std::array<uint64_t, 3> words{};
    auto copied = cudaMemcpy(words.data(), out_, sizeof words, cudaMemcpyDeviceToHost);
    if (copied != cudaSuccess) throw ReplayFailure{Outcome::kHarnessFault, cudaGetErrorString(copied), true};
    return words;
  }

 private:
  Kernels() {
    std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n";
    for (at::ScalarType dtype : kDtypes) {
      auto name = [&](int which) { return cat("tritonrl_", kNames[which], "_", c10::toString(dtype)); };
      ptx += kernel(name(0), dtype, kMoments, reduce(0, true) + reduce(1, true) + reduce(2, true));
      ptx += kernel(name(1), dtype, kWorst, reduce(2, false));
      ptx += kernel(name(2), dtype, kBounded, reduce(0, true) + reduce(2, false));
    }
    const CudaDriver& driver = CudaDriver::get();
    driver.check(driver.module_load(&module_, ptx.c_str()), "loading the comparing kernels");
    for (size_t which = 0; which < 3; ++which) {
      for (size_t i = 0; i < std::size(kDtypes); ++i) {
        std::string name = cat("tritonrl_", kNames[which], "_", c10::toString(kDtypes[i]));
        driver.check(driver.module_function(&functions_[which][i], module_, name.c_str()), "the comparing kernels");
      }
    }
    CHECK(cudaMalloc(&out_, sizeof(uint64_t) * 3) == cudaSuccess) << "no GPU memory at all";
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    blocks_ = kBlocksPerProcessor * static_cast<unsigned>(std::max(processors, 1));
  }

  CUmodule module_ = nullptr;
  CUfunction functions_[3][std::size(kDtypes)] = {};
  void* out_ = nullptr;
  unsigned blocks_ = 0;
};

double as_double(uint64_t word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

ErrorMoments error_moments(const at::Tensor& truth, const at::Tensor& other) {
  if (truth.is_cuda()) {
    auto words = Kernels::get().run(0, truth, other, 0, 0);
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

double worst_relative_error(const at::Tensor& truth, const at::Tensor& other, double offset) {
  if (truth.is_cuda()) return as_double(Kernels::get().run(1, truth, other, offset, 0)[2]);
  double worst = 0;
  in_chunks(truth.numel(), [&](int64_t at, int64_t n) {
    at::Tensor t = truth.narrow(0, at, n), d = other.narrow(0, at, n).to(at::kDouble, false, true);
    at::Tensor ratio = d.sub_(t).abs_().div_(t.abs().add_(offset));
    ratio.masked_fill_(ratio.isfinite().logical_not(), 0);
    worst = std::max(worst, ratio.max().item<double>());
  });
  return worst;
}

BoundedError bounded_error(const at::Tensor& truth, const at::Tensor& other, double relative, double absolute) {
  if (truth.is_cuda()) {
    auto words = Kernels::get().run(2, truth, other, relative, absolute);
    return {as_double(words[0]), as_double(words[2])};
  }
  BoundedError result;
  in_chunks(truth.numel(), [&](int64_t at, int64_t n) {
    at::Tensor t = truth.narrow(0, at, n), error = at::sub(t, other.narrow(0, at, n));
    result.squares += error.dot(error).item<double>();
    at::Tensor ratio = error.abs_().div_(t.abs().mul_(relative).add_(absolute));
    double worst = ratio.max().item<double>();
    result.worst = std::isfinite(worst) ? std::max(result.worst, worst) : kInfinity;
  });
  return result;
}

}  // namespace tritonrl
