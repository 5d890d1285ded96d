// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/kernels.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl::cuda {
namespace {

constexpr char kSource[] =
#include "model/cuda/kernels.cu.inc"
    ;
constexpr int kThreads = 256, kRowThreads = 1024;  // A row of the vocabulary.
constexpr int kCacheThreads = 64;
constexpr int kPack = 8;
constexpr const char* kTypes[] = {"float", "tritonrl::cuda::Bf16"};
constexpr size_t kMostDevices = 64;

// By type and number of neighbours; only by type; one only.
constexpr const char* kPacked[] = {"rms_norm", "rms_norm_backward", "swiglu",      "swiglu_backward",
                                   "dropout",  "cross_entropy",     "store_cache", "dequantize"};
constexpr const char* kTyped[] = {"rope"};
constexpr const char* kPlain[] = {"sample"};

std::string name_of(const char* kernel, size_t type, bool packed) {
  auto is_in = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), std::string_view(kernel)) != std::end(names);
  };
  std::string name = cat("tritonrl::cuda::", kernel);
  if (is_in(kPacked)) return cat(name, "<", kTypes[type], ", ", packed ? kPack : 1, ">");
  return is_in(kTyped) ? cat(name, "<", kTypes[type], ">") : name;
}

// The CUDA runtime that LibTorch has loaded (open_device makes its symbols global).
struct Runtime {
  decltype(&::cudaGetErrorString) error_text;
  decltype(&::cudaDeviceGetAttribute) attribute;
  decltype(&::cudaLibraryLoadData) load;
  decltype(&::cudaLibraryGetKernel) kernel;
  decltype(&::cudaLaunchKernel) launch;

  static const Runtime& get() {
    static const Runtime runtime;
    return runtime;
  }
  void check(cudaError_t result, const char* what) const {
    if (result != cudaSuccess) throw environment_error(cat(what, ": ", error_text(result)));
  }

 private:
  Runtime() {
    auto find = [](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(RTLD_DEFAULT, name));
      if (!function) throw environment_error(cat("LibTorch has loaded no CUDA runtime with ", name));
    };
    find(error_text, "cudaGetErrorString");
    find(attribute, "cudaDeviceGetAttribute");
    find(load, "cudaLibraryLoadData");
    find(kernel, "cudaLibraryGetKernel");
    find(launch, "cudaLaunchKernel");
  }
};

// What a kernel's parameter is filled from.
template <class T>
T word(T value) {
  return value;
}
void* word(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

// Whether a thread may take kPack neighbours of rows of `width` at once.
bool packs(int64_t width, std::initializer_list<const at::Tensor*> tensors) {
  bool aligned = width % kPack == 0;
  for (const at::Tensor* tensor : tensors) {
    aligned = aligned && reinterpret_cast<uintptr_t>(tensor->data_ptr()) % 16 == 0;
  }
  return aligned;
}

int64_t blocks_for(int64_t elements, bool packed) {
  int64_t each = int64_t{kThreads} * (packed ? kPack : 1);
  return (elements + each - 1) / each;
}

std::unique_ptr<const Kernels> open_kernels(const at::Device& device) {
  const char* wanted = std::getenv("TRITONRL_CUDA_KERNELS");
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  try {
    return std::make_unique<const Kernels>(device);
  } catch (const Error& error) {
    log_warn(cat("no CUDA kernels of our own, generation and training will be slower: ", error.what()));
    return nullptr;
  }
}

}  // namespace

const CudaProgram& program() {
  static const CudaProgram program = [] {
    CudaProgram out{"model/cuda/kernels.cu", kSource, {}, {}};
    for (size_t type : {0, 1}) {
      for (const char* kernel : kPacked) {
        for (bool packed : {false, true}) out.kernels.push_back(name_of(kernel, type, packed));
      }
      for (const char* kernel : kTyped) out.kernels.push_back(name_of(kernel, type, false));
    }
    for (const char* kernel : kPlain) out.kernels.push_back(name_of(kernel, 0, false));
    return out;
  }();
  return program;
}

Kernels::Kernels(const at::Device& device) {
  const Runtime& runtime = Runtime::get();
  c10::DeviceGuard guard(device);
  int major = 0, minor = 0;
  runtime.check(runtime.attribute(&major, cudaDevAttrComputeCapabilityMajor, device.index()), "the device");
  runtime.check(runtime.attribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index()), "the device");
  Cubin cubin = compile_cuda(program(), 10 * major + minor);
  cudaLibrary_t library = nullptr;  // Stays loaded.
  runtime.check(runtime.load(&library, cubin.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                "loading CUDA kernels");
  auto find = [&](Variants& variants, const char* kernel) {
    for (size_t type : {0, 1}) {
      for (bool packed : {false, true}) {
        cudaKernel_t function = nullptr;
        runtime.check(runtime.kernel(&function, library, cubin.symbols.at(name_of(kernel, type, packed)).c_str()),
                      kernel);
        variants.function[type][packed] = function;
      }
    }
  };
  find(rms_norm_, "rms_norm");
  find(rms_norm_backward_, "rms_norm_backward");
  find(rope_, "rope");
  find(swiglu_, "swiglu");
  find(swiglu_backward_, "swiglu_backward");
  find(dropout_, "dropout");
  find(cross_entropy_, "cross_entropy");
  find(store_cache_, "store_cache");
  find(dequantize_, "dequantize");
  find(sample_, "sample");
}

template <class... A>
void Kernels::launch(const Variants& kernel, const at::Tensor& typed, bool packed, int64_t blocks, int threads,
                     const A&... arguments) const {
  if (blocks == 0) return;
  c10::DeviceGuard guard(typed.device());
  void* stream = c10::impl::VirtualGuardImpl(typed.device().type()).getStream(typed.device()).native_handle();
  auto words = std::make_tuple(word(arguments)...);
  auto pointers = std::apply([](auto&... each) { return std::array<void*, sizeof...(A)>{&each...}; }, words);
  const Runtime& runtime = Runtime::get();
  runtime.check(
      runtime.launch(kernel.function[typed.scalar_type() == at::kBFloat16][packed], dim3(static_cast<unsigned>(blocks)),
                     dim3(static_cast<unsigned>(threads)), pointers.data(), 0, static_cast<cudaStream_t>(stream)),
      "a CUDA kernel did not start");
}

void Kernels::rms_norm(const at::Tensor& x, const at::Tensor& weight, float eps, at::Tensor& y,
                       at::Tensor* inverse) const {
  int64_t h = x.size(1);
  launch(rms_norm_, y, packs(h, {&x, &weight, &y}), x.size(0), kThreads, x, weight, h, eps, y,
         inverse ? *inverse : at::Tensor());
}

void Kernels::rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& inverse, at::Tensor& dx) const {
  int64_t h = x.size(1);
  launch(rms_norm_backward_, dy, packs(h, {&dy, &x, &weight, &dx}), x.size(0), kThreads, dy, x, weight, inverse, h, dx);
}

void Kernels::rope(at::Tensor& x, int64_t heads, int64_t d, const at::Tensor& position, const at::Tensor& cos,
                   const at::Tensor& sin, float sign) const {
  launch(rope_, x, false, x.size(0), kThreads, x, x.size(1), heads, d, position, cos, sin, sign);
}

void Kernels::swiglu(const at::Tensor& gate_up, at::Tensor& h) const {
  bool packed = packs(h.size(1), {&gate_up, &h});
  launch(swiglu_, h, packed, blocks_for(h.numel(), packed), kThreads, gate_up, h.numel(), h.size(1), h);
}

void Kernels::swiglu_backward(const at::Tensor& dh, const at::Tensor& gate_up, at::Tensor& dgate_up) const {
  bool packed = packs(dh.size(1), {&dh, &gate_up, &dgate_up});
  launch(swiglu_backward_, dh, packed, blocks_for(dh.numel(), packed), kThreads, dh, gate_up, dh.numel(), dh.size(1),
         dgate_up);
}

void Kernels::dropout(const at::Tensor& x, uint64_t seed, float keep, at::Tensor& y) const {
  bool packed = packs(x.numel(), {&x, &y});
  auto limit = static_cast<uint32_t>(keep * 65536.0f);
  launch(dropout_, x, packed, blocks_for(x.numel(), packed), kThreads, x, x.numel(), seed, limit, 1.0f / keep, y);
}

void Kernels::cross_entropy(at::Tensor& logits, const at::Tensor& target, const at::Tensor& weight,
                            at::Tensor& log_prob) const {
  int64_t v = logits.size(1);
  launch(cross_entropy_, logits, packs(v, {&logits}), logits.size(0), kRowThreads, logits, v, target, weight, log_prob);
}

void Kernels::store_cache(const at::Tensor& qkv, int64_t heads, const at::Tensor& slot, const at::Tensor& position,
                          at::Tensor& k_cache, at::Tensor& v_cache) const {
  int64_t kv_heads = k_cache.size(1), capacity = k_cache.size(2), d = k_cache.size(3);
  launch(store_cache_, qkv, packs(d, {&qkv, &k_cache, &v_cache}), qkv.size(0), kCacheThreads, qkv, heads, kv_heads, d,
         capacity, slot, position, k_cache, v_cache);
}

void Kernels::dequantize(const at::Tensor& q, const at::Tensor& scale, at::Tensor& out) const {
  int64_t n = q.size(0), k = q.size(1), group = k / scale.size(0);
  bool packed = packs(group, {&q, &out});
  launch(dequantize_, out, packed, blocks_for(n * k, packed), kThreads, q, scale, n * k, n, k, group, out);
}

void Kernels::sample(const at::Tensor& logits, int64_t limit, float scale, const at::Tensor& uniform, at::Tensor& token,
                     at::Tensor& log_prob) const {
  launch(sample_, logits, false, logits.size(0), kRowThreads, logits, logits.size(1), limit, scale, uniform, token,
         log_prob);
}

const Kernels* kernels(const at::Device& device) {
  if (device.is_cpu()) return nullptr;
  static std::array<std::once_flag, kMostDevices> once;
  static std::array<std::unique_ptr<const Kernels>, kMostDevices> opened;
  auto index = static_cast<size_t>(device.index());
  CHECK(index < kMostDevices) << device.str();
  std::call_once(once[index], [&] { opened[index] = open_kernels(device); });
  return opened[index].get();
}

}  // namespace tritonrl::cuda
