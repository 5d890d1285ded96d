// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/own_kernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "verify/replay/driver.h"

namespace tritonrl {
namespace {

constexpr char kSource[] =
#include "verify/replay/kernels.cu.inc"
    ;
constexpr char kNamespace[] = "tritonrl::";
constexpr const char* kNames[] = {"count_damage", "fill_spans", "hash", "hold", "read_clock", "spin", "read_through"};
constexpr const char* kComparing[] = {"moments", "bounded"};
constexpr const char* kCudaTypes[] = {"float", "double", "tritonrl::Half", "tritonrl::Bf16"};

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  CHECK(cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess);
  return value;
}

}  // namespace

const CudaProgram& own_program() {
  static const CudaProgram program = [] {
    CudaProgram out{"verify/replay/kernels.cu", kSource, {}, {"--fmad=false"}};
    for (const char* name : kNames) out.kernels.push_back(cat(kNamespace, name));
    for (const char* name : kComparing) {
      for (const char* type : kCudaTypes) out.kernels.push_back(cat(kNamespace, name, "<", type, ">"));
    }
    return out;
  }();
  return program;
}

OwnKernels& OwnKernels::get() {
  static OwnKernels kernels;
  return kernels;
}

OwnKernels::OwnKernels() {
  const CudaDriver& driver = CudaDriver::get();
  Cubin cubin = compile_cuda(own_program(), 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) +
                                                device_attribute(cudaDevAttrComputeCapabilityMinor));
  CUmodule module = nullptr;  // Stays loaded.
  driver.check(driver.module_load(&module, cubin.image.data()), "loading our own kernels");
  for (const auto& [kernel, symbol] : cubin.symbols) {
    driver.check(driver.module_function(&functions_[kernel], module, symbol.c_str()), "our own kernels");
  }
  processors_ = static_cast<unsigned>(device_attribute(cudaDevAttrMultiProcessorCount));
  damage_ = find("count_damage");
  fill_ = find("fill_spans");
  hash_ = find("hash");
  hold_ = find("hold");
  clock_ = find("read_clock");
  spin_ = find("spin");
  read_ = find("read_through");
}

CUfunction OwnKernels::find(const std::string& name) const {
  auto it = functions_.find(cat(kNamespace, name));
  CHECK(it != functions_.end()) << "no kernel " << name;
  return it->second;
}

void OwnKernels::launch(CUfunction function, unsigned blocks, unsigned threads, void** arguments) {
  const CudaDriver& driver = CudaDriver::get();
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  driver.check(driver.launch(&config, function, arguments, nullptr), "launching our own kernel");
}

void OwnKernels::count_damage(CUdeviceptr at, uint64_t words, uint32_t pattern, CUdeviceptr counter) {
  void* arguments[] = {&at, &words, &pattern, &counter};
  launch(damage_, 1, 256, arguments);
}

void OwnKernels::fill(const Spans& spans, size_t count, uint32_t pattern) {
  if (count == 0) return;
  void* arguments[] = {const_cast<Spans*>(&spans), &pattern};
  launch(fill_, static_cast<unsigned>(count), 256, arguments);
}

void OwnKernels::hash(CUdeviceptr at, uint64_t bytes, uint64_t key, CUdeviceptr out) {
  constexpr uint64_t kWordsPerBlock = 4096, kMostBlocks = 1024;
  void* arguments[] = {&at, &bytes, &key, &out};
  launch(hash_, static_cast<unsigned>(std::clamp<uint64_t>(bytes / 4 / kWordsPerBlock, 1, kMostBlocks)), 256,
         arguments);
}

void OwnKernels::hold(CUdeviceptr flag, uint64_t limit_ns) {
  void* arguments[] = {&flag, &limit_ns};
  launch(hold_, 1, 1, arguments);
}

void OwnKernels::read_clock(CUdeviceptr out, uint64_t ns) {
  void* arguments[] = {&out, &ns};
  launch(clock_, 1, 1, arguments);
}

void OwnKernels::spin(uint64_t ns) {
  void* arguments[] = {&ns};
  launch(spin_, 1, 1, arguments);
}

void OwnKernels::read_through(CUdeviceptr at, uint64_t bytes, CUdeviceptr sink) {
  void* arguments[] = {&at, &bytes, &sink};
  launch(read_, 1024, 256, arguments);
}

}  // namespace tritonrl
