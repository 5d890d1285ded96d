// SPDX-License-Identifier: Apache-2.0
// Bundle: a candidate as the GPU processes get it, its trace and the compiled kernel of each of its specs
// (docs/trace.md). Parsed as strictly as the trace itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "verify/trace/trace.h"

namespace tritonrl {

struct CompiledKernel {
  TraceFile file;                // One kernel table, one cubin, no case.
  bool rounds_products = false;  // It multiplies matrices, and rounds their elements to ten bits or so before:
  bool in_tf32 = false;          // ... float32 ones in TF32, and no others.
  const TraceCubin& cubin() const { return file.cubins[0]; }
};

// By index of the spec; null for one that was not wanted or does not compile.
using KernelSet = std::vector<std::shared_ptr<const CompiledKernel>>;

// The trace with the kernels put in: choices without one are gone, and so are cases in which a launch has no choice
// left. Strict like the parser: a trace that brings cubins of its own, or is left without a case, does not link.
Parsed<TraceFile> link_kernels(TraceFile file, const KernelSet& kernels);

// Bundle: "TRPB" | u64 length | trace | u32 specs | for each: u8 0, or u8 1 | u64 length | trace of one cubin.
std::string make_bundle(const TraceFile& trace, const KernelSet& kernels);
// Of a bundle, or of a plain trace (a reference's).
Parsed<TraceFile> parse_bundle(std::shared_ptr<const std::string> bytes);

}  // namespace tritonrl
