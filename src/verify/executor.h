// SPDX-License-Identifier: Apache-2.0
// Executor: what runs the recording of one candidate. There are two:
//
//   ReplayExecutor      on a GPU: its judge's replayers run the compiled kernels, and time them (replay_executor.h)
//   InterpretExecutor   without one: a sandboxed child walks the recording through Triton's interpreter
//                       (interpret_executor.h)
//
// Whichever it is, the judge (verify/gpu/judge.h) draws the inputs, knows the answer and compares; an executor brings
// inputs to the candidate and outputs to the judge. Everything else about a candidate's stages is in execution.h and
// the same for both. Thread rule: one thread.
#pragma once

#include <optional>

#include "verify/bundle.h"
#include "verify/gpu_lane.h"
#include "verify/reference.h"

namespace tritonrl {

struct TimeAnswer {
  GpuAnswer answer;
  std::optional<TimingResult> result;
  double triton_share = 0;  // Of the candidate's device time.
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual VerifyPath path() const = 0;
  virtual bool can_time() const = 0;
  // Else that those of the cases every candidate has to do can be made is enough.
  virtual bool runs_cubins() const = 0;
  // Cases whose arrays have more than so many times the elements of the original's are too large for it.
  virtual double most_growth() const = 0;
  // __init__ is run where the candidate is; else the recording brings what it left.
  virtual bool runs_init() const = 0;

  // Blocks until it has what it runs on. What it is given must outlive the runs. Again costs nothing.
  virtual GpuAnswer begin(const Reference& reference, const PlanFile& recording, const KernelSet& kernels) = 0;
  // Runs one case on inputs that the judge draws, and has the outputs judged. REQUIRES: begin() passed.
  virtual GpuAnswer run(const GpuRun& run) = 0;
  // Takes readings until the protocol has enough. REQUIRES: can_time(), begin() passed.
  virtual TimeAnswer time(GpuTiming timing, const TimingProtocol& protocol) = 0;
};

}  // namespace tritonrl
