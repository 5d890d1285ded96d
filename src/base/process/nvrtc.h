// SPDX-License-Identifier: Apache-2.0
// NVRTC: CUDA C++ into machine code for one GPU while the program runs, kept on disk so that the next start reads it.
//
// libnvrtc comes with LibTorch's wheels and is opened when something has to be compiled; nothing links it, and it needs
// neither a GPU nor a driver nor nvcc. Sources may include nothing: NVRTC brings what CUDA C++ has without headers.
//
// A cubin lies in the cache under the SHA-256 of all it depends on (source, options, capability, kernels, NVRTC's
// version), behind the SHA-256 of its own bytes: a file that is torn, or not ours, is made again. A cache that cannot
// be written costs the time of compiling and nothing else. Thread rule: any thread; one compiles at a time.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tritonrl {

struct CudaProgram {
  std::string name;                  // For messages: the file below src/.
  std::string source;                // CUDA C++20.
  std::vector<std::string> kernels;  // As C++ names them: "tritonrl::scale<float, 8>".
  std::vector<std::string> options;  // Besides architecture and language: "--fmad=false".
};

struct Cubin {
  std::string image;                           // What cuModuleLoadData takes.
  std::map<std::string, std::string> symbols;  // Kernel, as in CudaProgram -> its name in the image.
};

// $TRITONRL_CACHE/cuda, or else tritonrl/cuda in $XDG_CACHE_HOME or ~/.cache; empty (keep nothing) where none is set.
std::filesystem::path cuda_cache();

// Whether libnvrtc can be opened here.
bool has_nvrtc();

// `capability`: 90 for compute capability 9.0. Throws Error (environment) where libnvrtc cannot be opened, does not
// know the capability, or refuses the source (the message then holds its log).
Cubin compile_cuda(const CudaProgram& program, int capability, const std::filesystem::path& cache = cuda_cache());

}  // namespace tritonrl
