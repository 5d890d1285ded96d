// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/driver.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "verify/trace/target_gpu.h"

namespace tritonrl {
namespace {

constexpr int64_t kStaticShared = 48 << 10;

// One launch parameter in the bytes the kernel expects.
struct Packed {
  alignas(64) char bytes[sizeof(CUtensorMap)];
};

Packed pack_bytes(const std::string& bytes) {
  Packed packed{};
  std::memcpy(packed.bytes, bytes.data(), std::min(bytes.size(), sizeof packed.bytes));
  return packed;
}

template <class T>
Packed pack_as(T value) {
  Packed packed{};
  std::memcpy(packed.bytes, &value, sizeof value);
  return packed;
}

Packed pack_number(const TraceArg& arg, const std::string& type) {
  double real = arg.kind == TraceArg::Kind::kFloat ? arg.real : static_cast<double>(arg.number);
  if (type == "fp32" || type == "f32") return pack_as(static_cast<float>(real));
  if (type == "fp64") return pack_as(real);
  if (type == "fp16") return pack_as(c10::Half(static_cast<float>(real)).x);
  if (type == "bf16") return pack_as(c10::BFloat16(static_cast<float>(real)).x);
  if (arg.kind == TraceArg::Kind::kFloat)
    throw ReplayFailure{{Rule::kForgedResult, "a float where a kernel takes an integer"}};
  static const std::string integers[] = {"i1", "u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
  for (const std::string& known : integers) {
    if (type == known) return pack_as(arg.number);  // Little endian: the low bytes are the value.
  }
  throw ReplayFailure{{Rule::kNotReplayable, cat("a kernel parameter of type ", type.substr(0, 40))}};
}

// A descriptor over `tensor`, as its kernel parameters.
void pack_descriptor(const TraceArg& arg, const at::Tensor& tensor, const std::optional<TmaMetadata>& metadata,
                     std::vector<Packed>* packed) {
  Descriptor descriptor = descriptor_of(arg);
  auto element_bytes = static_cast<int64_t>(tensor.element_size());
  auto address = reinterpret_cast<uint64_t>(tensor.data_ptr());
  int64_t bytes = static_cast<int64_t>(tensor.storage().nbytes()) - tensor.storage_offset() * element_bytes;
  check_reach(descriptor, element_bytes, address, bytes);
  std::string map;
  if (metadata) {
    TensorMapRequest request = tensor_map_request(descriptor, *metadata, element_bytes);
    const CudaDriver& driver = CudaDriver::get();
    const cuuint32_t steps[] = {1, 1, 1, 1, 1};
    CUtensorMap made;
    driver.check(
        driver.encode_tensor_map(&made, static_cast<CUtensorMapDataType>(request.elem_type), request.rank,
                                 tensor.data_ptr(), request.dims.data(), request.strides.data(), request.box.data(),
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(request.swizzle),
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                 request.pads_with_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                                       : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "making a tensor map");
    map.assign(reinterpret_cast<const char*>(&made), sizeof made);
  }
  for (const std::string& one : descriptor_parameters(descriptor, address, metadata ? &map : nullptr)) {
    packed->push_back(pack_bytes(one));
  }
}

bool is_descriptor(const std::string& type) { return type.rfind("tensordesc", 0) == 0; }

int64_t device_architecture() {
  static const int64_t arch = [] {
    int device = 0, major = 0, minor = 0;
    bool known = cudaGetDevice(&device) == cudaSuccess &&
                 cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
                 cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
    return known ? major * 10 + minor : 0;
  }();
  return arch;
}

void* symbol(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw environment_error("cannot load libcuda.so.1", "", "install NVIDIA's driver");
  void* found = ::dlsym(library, name);
  if (!found) throw environment_error(cat("NVIDIA's driver has no ", name), "", "update the driver");
  return found;
}

}  // namespace

void check_architecture(std::string_view image, int64_t device) {
  int64_t arch = architecture_of(image);
  if (arch == 0 || device == 0 || arch == device) return;
  throw ReplayFailure{
      {Rule::kVerifierFailed, cat("a kernel was compiled for sm_", arch, ", and this GPU is sm_", device)}};
}

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
  bool full = result == CUDA_ERROR_OUT_OF_MEMORY;
  // What was compiled for another GPU is nobody's fault but ours.
  bool foreign = result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                 result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  std::string said = cat(what, ": ", text ? text : "unknown CUDA error");
  Rule rule = full ? Rule::kOutOfMemory : foreign ? Rule::kVerifierFailed : Rule::kKernelFailed;
  ReplayFailure failure{{rule, said}, !full && !foreign};
  // Refused before anything ran: the context is whole.
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_FOUND ||
      result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES || result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
    failure.context_lost = false;
  }
  throw failure;
}

CudaLauncher::~CudaLauncher() {
  for (auto& [cubin, loaded] : loaded_) CudaDriver::get().module_unload(loaded.module);
}

CudaLauncher::Loaded& CudaLauncher::load(const TraceCubin& cubin) {
  Loaded& loaded = loaded_[&cubin];
  if (loaded.function) return loaded;
  auto count = std::count_if(cubin.signature.begin(), cubin.signature.end(), is_descriptor);
  loaded.descriptors = tma_metadata(cubin.descriptors, static_cast<size_t>(count));
  const CudaDriver& driver = CudaDriver::get();
  check_architecture(cubin.image, device_architecture());
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

void CudaLauncher::launch(const TraceCubin& cubin, const TraceChoice& choice,
                          const std::vector<LaunchArgument>& arguments) {
  int64_t programs = choice.grid[0] * choice.grid[1] * choice.grid[2];
  if (programs == 0) return;
  const CudaDriver& driver = CudaDriver::get();
  Loaded& loaded = load(cubin);
  std::vector<Packed> packed;
  packed.reserve(arguments.size() + 2);
  size_t next_descriptor = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& type = arguments[i].type;
    if (type == "constexpr") continue;
    if (is_descriptor(type) != (arguments[i].value->kind == TraceArg::Kind::kDescriptor)) {
      throw ReplayFailure{{Rule::kForgedResult, "a descriptor where a kernel takes none, or the other way round"}};
    }
    if (is_descriptor(type)) {
      pack_descriptor(*arguments[i].value, arguments[i].tensor, loaded.descriptors.at(next_descriptor++), &packed);
      continue;
    }
    if (!type.empty() && type[0] == '*') {
      bool null = arguments[i].value->kind == TraceArg::Kind::kNone;
      if (!arguments[i].is_tensor && !null) throw ReplayFailure{{Rule::kForgedResult, "a pointer that is no tensor"}};
      packed.push_back(pack_as(null ? uint64_t{0} : reinterpret_cast<uint64_t>(arguments[i].tensor.data_ptr())));
    } else if (arguments[i].is_tensor && (type == "i64" || type == "u64")) {  // x.data_ptr().
      packed.push_back(pack_as(reinterpret_cast<uint64_t>(arguments[i].tensor.data_ptr())));
    } else {
      if (arguments[i].is_tensor) throw ReplayFailure{{Rule::kForgedResult, "a tensor where a kernel takes a number"}};
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
