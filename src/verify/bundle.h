// SPDX-License-Identifier: Apache-2.0
// Bundle: a candidate as the GPU processes get it, its recording and the compiled kernel of each of its specs
// (docs/plan.md). Parsed as strictly as the recording itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "verify/plan.h"

namespace tritonrl {

struct CompiledKernel {
  PlanFile file;  // One kernel table, one cubin, no case.
  const PlanCubin& cubin() const { return file.cubins[0]; }
};

// By index of the spec; null for one that was not wanted or does not compile.
using KernelSet = std::vector<std::shared_ptr<const CompiledKernel>>;

// The recording with the kernels put in: choices without one are gone, and so are cases in which a launch has no choice
// left. Strict like the parser: a recording that brings cubins of its own, or is left without a case, does not link.
Parsed<PlanFile> link_kernels(PlanFile recording, const KernelSet& kernels);

// Bundle: "TRPB" | u64 length | recording | u32 specs | for each: u8 0, or u8 1 | u64 length | recording of one cubin.
std::string make_bundle(const PlanFile& recording, const KernelSet& kernels);
// Of a bundle, or of a plain recording (a reference's).
Parsed<PlanFile> parse_bundle(std::shared_ptr<const std::string> bytes);

}  // namespace tritonrl
