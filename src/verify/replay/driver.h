// SPDX-License-Identifier: Apache-2.0
// CudaDriver: the driver's entry points, fetched at run time, and the launcher of a trace's cubins.
//
// Works in the primary context that LibTorch uses, on its default stream. All functions throw ReplayFailure; after
// `context_lost` the process must end. Thread rule: one thread.
#pragma once

#include <cuda.h>

#include <map>
#include <string>

#include "verify/replay/tape.h"
#include "verify/replay/tensor_map.h"

namespace tritonrl {

// Loads libcuda. Throws Error (environment) where there is no driver.
class CudaDriver {
 public:
  static const CudaDriver& get();

  // Turns a failed call into a ReplayFailure that says `what`.
  void check(CUresult result, const char* what) const;

  decltype(&::cuModuleLoadData) module_load;
  decltype(&::cuModuleUnload) module_unload;
  decltype(&::cuModuleGetFunction) module_function;
  decltype(&::cuFuncSetAttribute) function_set;
  decltype(&::cuFuncGetAttribute) function_get;
  decltype(&::cuLaunchKernelEx) launch;
  decltype(&::cuMemsetD32Async) fill;
  decltype(&::cuStreamSynchronize) synchronize;
  decltype(&::cuGetErrorName) error_name;
  decltype(&::cuGetErrorString) error_text;
  decltype(&::cuTensorMapEncodeTiled) encode_tensor_map;

 private:
  CudaDriver();
};

// Throws ReplayFailure, which is our fault, where a cubin says that it was compiled for another architecture than the
// device's (90 = compute capability 9.0; 0 = not known).
void check_architecture(std::string_view image, int64_t device);

// Launches a trace's cubins. Modules are loaded on first use and unloaded with the object.
class CudaLauncher : public Launcher {
 public:
  ~CudaLauncher() override;
  void launch(const TraceCubin& cubin, const TraceChoice& choice,
              const std::vector<LaunchArgument>& arguments) override;
  void wait() override;

 private:
  struct Loaded {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    at::Tensor global_scratch, profile_scratch;
    std::vector<std::optional<TmaMetadata>> descriptors;  // By place among the signature's.
  };
  Loaded& load(const TraceCubin& cubin);
  std::map<const TraceCubin*, Loaded> loaded_;
};

}  // namespace tritonrl
