// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/driver.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <dlfcn.h>

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int64_t kStaticShared = 48 << 10;

constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry tritonrl_count_damage(.param .u64 p_at, .param .u64 p_words, .param .u32 p_pattern, .param .u64 p_counter)
{
  .reg .pred %p;
  .reg .u32 %t, %n, %pattern, %word, %one;
  .reg .u64 %at, %words, %counter, %i, %step, %address;
  ld.param.u64 %at, [p_at];
  ld.param.u64 %words, [p_words];
  ld.param.u32 %pattern, [p_pattern];
  ld.param.u64 %counter, [p_counter];
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %one, 1;
  cvt.u64.u32 %i, %t;
  cvt.u64.u32 %step, %n;
LOOP:
  setp.ge.u64 %p, %i, %words;
  @%p bra DONE;
  shl.b64 %address, %i, 2;
  add.u64 %address, %address, %at;
  ld.volatile.u32 %word, [%address];
  add.u64 %i, %i, %step;
  setp.eq.u32 %p, %word, %pattern;
  @%p bra LOOP;
  red.add.u32 [%counter], %one;
  bra LOOP;
DONE:
  ret;
}

.visible .entry tritonrl_hold(.param .u64 p_flag, .param .u64 p_limit)
{
  .reg .pred %p;
  .reg .u32 %value;
  .reg .u64 %flag, %limit, %start, %now;
  ld.param.u64 %flag, [p_flag];
  ld.param.u64 %limit, [p_limit];
  mov.u64 %start, %globaltimer;
WAIT:
  ld.volatile.u32 %value, [%flag];
  setp.ne.u32 %p, %value, 0;
  @%p bra OUT;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %p, %now, %limit;
  @%p bra WAIT;
OUT:
  ret;
}
)";

// One launch parameter in the bytes the kernel expects.
struct Packed {
  alignas(8) char bytes[8];
};

template <class T>
Packed pack_as(T value) {
  Packed packed{};
  std::memcpy(packed.bytes, &value, sizeof value);
  return packed;
}

Packed pack_number(const PlanArg& arg, const std::string& type) {
  double real = arg.kind == PlanArg::Kind::kFloat ? arg.real : static_cast<double>(arg.number);
  if (type == "fp32" || type == "f32") return pack_as(static_cast<float>(real));
  if (type == "fp64") return pack_as(real);
  if (type == "fp16") return pack_as(c10::Half(static_cast<float>(real)).x);
  if (type == "bf16") return pack_as(c10::BFloat16(static_cast<float>(real)).x);
  if (arg.kind == PlanArg::Kind::kFloat)
    throw ReplayFailure{Outcome::kTampered, "a float where a kernel takes an integer"};
  static const std::string integers[] = {"i1", "u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
  for (const std::string& known : integers) {
    if (type == known) return pack_as(arg.number);  // Little endian: the low bytes are the value.
  }
  throw ReplayFailure{Outcome::kUnsupported, cat("a kernel parameter of type ", type.substr(0, 40))};
}

void* symbol(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw environment_error("cannot load libcuda.so.1", "", "install NVIDIA's driver");
  void* found = ::dlsym(library, name);
  if (!found) throw environment_error(cat("NVIDIA's driver has no ", name), "", "update the driver");
  return found;
}

}  // namespace

const CudaDriver& CudaDriver::get() {
  static const CudaDriver driver;
  return driver;
}

CudaDriver::CudaDriver() {
#define TRITONRL_ENTRY(member, name) member = reinterpret_cast<decltype(member)>(symbol(name))
  TRITONRL_ENTRY(module_load, "cuModuleLoadData");
  TRITONRL_ENTRY(module_unload, "cuModuleUnload");
  TRITONRL_ENTRY(module_function, "cuModuleGetFunction");
  TRITONRL_ENTRY(function_set, "cuFuncSetAttribute");
  TRITONRL_ENTRY(function_get, "cuFuncGetAttribute");
  TRITONRL_ENTRY(launch, "cuLaunchKernelEx");
  TRITONRL_ENTRY(fill, "cuMemsetD32Async");
  TRITONRL_ENTRY(synchronize, "cuStreamSynchronize");
  TRITONRL_ENTRY(error_name, "cuGetErrorName");
  TRITONRL_ENTRY(error_text, "cuGetErrorString");
  TRITONRL_ENTRY(encode_tensor_map, "cuTensorMapEncodeTiled");
#undef TRITONRL_ENTRY
}

void CudaDriver::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  error_text(result, &text);
  ReplayFailure failure{Outcome::kRuntimeError, cat(what, ": ", text ? text : "unknown CUDA error"), true};
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    failure.outcome = Outcome::kOutOfMemory;
    failure.context_lost = false;
  }
  // Refused before anything ran: the context is whole.
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NOT_FOUND ||
      result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
      result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
    failure.context_lost = false;
  }
  throw failure;
}

OwnKernels& OwnKernels::get() {
  static OwnKernels kernels;
  return kernels;
}

OwnKernels::OwnKernels() {
  const CudaDriver& driver = CudaDriver::get();
  driver.check(driver.module_load(&module_, kPtx), "loading our own kernels");
  driver.check(driver.module_function(&damage_, module_, "tritonrl_count_damage"), "our own kernels");
  driver.check(driver.module_function(&hold_, module_, "tritonrl_hold"), "our own kernels");
}

namespace {
void launch_small(CUfunction function, unsigned threads, void** arguments) {
  const CudaDriver& driver = CudaDriver::get();
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  driver.check(driver.launch(&config, function, arguments, nullptr), "launching our own kernel");
}
}  // namespace

void OwnKernels::count_damage(CUdeviceptr at, uint64_t words, uint32_t pattern, CUdeviceptr counter) {
  void* arguments[] = {&at, &words, &pattern, &counter};
  launch_small(damage_, 256, arguments);
}

void OwnKernels::hold(CUdeviceptr flag, uint64_t limit_ns) {
  void* arguments[] = {&flag, &limit_ns};
  launch_small(hold_, 1, arguments);
}

CudaLauncher::~CudaLauncher() {
  for (auto& [cubin, loaded] : loaded_) CudaDriver::get().module_unload(loaded.module);
}

CudaLauncher::Loaded& CudaLauncher::load(const PlanCubin& cubin) {
  Loaded& loaded = loaded_[&cubin];
  if (loaded.function) return loaded;
  const CudaDriver& driver = CudaDriver::get();
  // The driver reads the image's length from its headers, which came from outside: give it slack that holds nothing.
  std::string image(cubin.image);
  image.append(4096, '\0');
  driver.check(driver.module_load(&loaded.module, image.data()), "loading a kernel");
  driver.check(driver.module_function(&loaded.function, loaded.module, cubin.function.c_str()), "finding a kernel");
  if (cubin.shared > kStaticShared) {
    driver.check(driver.function_set(loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(cubin.shared)),
                 "asking for shared memory");
  }
  if (cubin.num_ctas == 16) {
    driver.check(driver.function_set(loaded.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                 "asking for a large cluster");
  }
  return loaded;
}

void CudaLauncher::launch(const PlanCubin& cubin, const PlanChoice& choice,
                          const std::vector<LaunchArgument>& arguments) {
  int64_t programs = choice.grid[0] * choice.grid[1] * choice.grid[2];
  if (programs == 0) return;
  if (arguments.size() != cubin.signature.size()) {
    throw ReplayFailure{Outcome::kTampered, "a launch has other arguments than its kernel"};
  }
  const CudaDriver& driver = CudaDriver::get();
  Loaded& loaded = load(cubin);
  std::vector<Packed> packed;
  packed.reserve(arguments.size() + 2);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& type = cubin.signature[i];
    if (type == "constexpr") continue;
    if (arguments[i].value->kind == PlanArg::Kind::kDescriptor) {
      throw ReplayFailure{Outcome::kUnsupported, "TMA descriptors are not replayed yet"};
    }
    if (!type.empty() && type[0] == '*') {
      bool null = arguments[i].value->kind == PlanArg::Kind::kNone;
      if (!arguments[i].is_tensor && !null) throw ReplayFailure{Outcome::kTampered, "a pointer that is no tensor"};
      packed.push_back(pack_as(null ? uint64_t{0} : reinterpret_cast<uint64_t>(arguments[i].tensor.data_ptr())));
    } else {
      if (arguments[i].is_tensor) throw ReplayFailure{Outcome::kTampered, "a tensor where a kernel takes a number"};
      packed.push_back(pack_number(*arguments[i].value, type));
    }
  }
  auto scratch = [&](int64_t bytes, at::Tensor* tensor) {
    if (bytes > 0 && (!tensor->defined() || tensor->numel() < bytes * programs * cubin.num_ctas)) {
      *tensor = at::empty({bytes * programs * cubin.num_ctas}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
    }
    packed.push_back(pack_as(bytes > 0 ? reinterpret_cast<uint64_t>(tensor->data_ptr()) : uint64_t{0}));
  };
  scratch(cubin.global_scratch, &loaded.global_scratch);
  scratch(cubin.profile_scratch, &loaded.profile_scratch);

  std::vector<void*> pointers;
  for (Packed& one : packed) pointers.push_back(one.bytes);
  CUlaunchAttribute attributes[4]{};
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(choice.grid[0] * cubin.num_ctas);
  config.gridDimY = static_cast<unsigned>(choice.grid[1]);
  config.gridDimZ = static_cast<unsigned>(choice.grid[2]);
  config.blockDimX = static_cast<unsigned>(32 * cubin.num_warps);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(cubin.shared);
  config.attrs = attributes;
  if (cubin.dependent_launch) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (cubin.cooperative) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[config.numAttrs++].value.cooperative = 1;
  }
  if (cubin.num_ctas != 1) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[config.numAttrs].value.clusterDim.x = static_cast<unsigned>(cubin.num_ctas);
    attributes[config.numAttrs].value.clusterDim.y = attributes[config.numAttrs].value.clusterDim.z = 1;
    ++config.numAttrs;
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attributes[config.numAttrs++].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  driver.check(driver.launch(&config, loaded.function, pointers.data(), nullptr), "launching");
}

void CudaLauncher::wait() { CudaDriver::get().check(CudaDriver::get().synchronize(nullptr), "running"); }

}  // namespace tritonrl
