// SPDX-License-Identifier: Apache-2.0
// OwnKernels: the verifier's own small kernels (kernels.cu, compiled for the device at hand when the process starts):
// they count damaged guard words, fill guard zones, hash memory, hold the stream, read the SM clock, empty the L2
// cache, spin for a known time, and compare (judge/error_kernels.h).
//
// All are queued on the default stream and throw ReplayFailure. Thread rule: one thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/process/nvrtc.h"

namespace tritonrl {

// What kernels.cu is compiled with, and the kernels that must be in it.
const CudaProgram& own_program();

// Spans of 32-bit words, which one launch fills.
struct Spans {
  static constexpr size_t kMost = 64;
  CUdeviceptr at[kMost];
  uint32_t words[kMost];
};

class OwnKernels {
 public:
  // Of the current device. Throws Error (environment) where they cannot be compiled.
  static OwnKernels& get();
  // The kernel that kernels.cu has under this name.
  CUfunction find(const std::string& name) const;
  unsigned processors() const { return processors_; }  // Of the device.
  static void launch(CUfunction function, unsigned blocks, unsigned threads, void** arguments);

  // Adds to *counter the number of 32-bit words in [at, at + words) that are not `pattern`.
  void count_damage(CUdeviceptr at, uint64_t words, uint32_t pattern, CUdeviceptr counter);
  // Writes `pattern` to the first `count` of the spans.
  void fill(const Spans& spans, size_t count, uint32_t pattern);
  // Adds to *out (8 bytes) a hash of `bytes` bytes from `at` (4-byte aligned) under `key`, which whoever wrote them
  // must not know: a sum over words of a mix (the finaliser of MurmurHash3, public domain) of word, index and key.
  void hash(CUdeviceptr at, uint64_t bytes, uint64_t key, CUdeviceptr out);
  // Holds the stream until *flag (mapped host memory) is not 0, at most limit_ns.
  void hold(CUdeviceptr flag, uint64_t limit_ns);
  // Runs for at least `ns` and writes to out[0] the SM's cycles and to out[1] the nanoseconds of the global timer that
  // went by between two of its ticks.
  void read_clock(CUdeviceptr out, uint64_t ns);
  // Runs for `ns` by the global timer.
  void spin(uint64_t ns);
  // Reads `bytes` (a multiple of 16) from `at`: the cache then holds them, and nothing that would have to be written
  // back. `sink` (4 bytes) keeps the reads from being left out.
  void read_through(CUdeviceptr at, uint64_t bytes, CUdeviceptr sink);

 private:
  OwnKernels();
  std::map<std::string, CUfunction> functions_;
  unsigned processors_;
  CUfunction damage_, fill_, hash_, hold_, clock_, spin_, read_;
};

}  // namespace tritonrl
