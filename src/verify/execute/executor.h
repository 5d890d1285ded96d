// SPDX-License-Identifier: Apache-2.0
// Executor: what runs the trace of one candidate. There are two:
//
//   ReplayExecutor      on a GPU: its judge's replayers run the compiled kernels, and time them (replay_executor.h)
//   InterpretExecutor   without one: a sandboxed child walks the trace through Triton's interpreter
//                       (interpret_executor.h)
//
// Whichever it is, the judge (verify/judge/judge.h) draws the inputs from a seed, knows the answer and compares. On a
// GPU the judge's own replayers hold the candidate, so that a run is one question to it; without one the executor
// carries inputs from the judge to the child and outputs back. Everything else about a candidate's stages is in
// execution.h and the same for both. Thread rule: one thread.
#pragma once

#include <optional>

#include "verify/execute/judge_slots.h"
#include "verify/sandbox/own_time.h"
#include "verify/trace/bundle.h"
#include "verify/trace/reference.h"

namespace tritonrl {

struct TimeAnswer {
  JudgeAnswer answer;
  std::optional<TimingResult> result;
  double triton_share = 0;  // Of the candidate's device time.
  // The fastest configuration of each launch that has several, in order; more than one where it was tuned anew.
  std::vector<std::vector<int64_t>> chosen;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual VerifyPath path() const = 0;
  virtual bool can_time() const = 0;
  // false: kernels are compiled only to see that they compile, and those of additional cases are left out.
  virtual bool runs_cubins() const = 0;
  // Do configurations that differ in warps and stages alone differ here?
  virtual bool runs_warps() const { return runs_cubins(); }
  // Cases whose arrays have more than so many times the elements of the original's are too large for it.
  virtual double most_growth() const = 0;
  // What is run next, in that order, as far as it is known: an executor may do it at once. Each run has its own poison.
  virtual void expect(std::vector<JudgeRun> /*runs*/) {}

  // Blocks until it has what it runs on. What it is given must outlive the runs. Again costs nothing.
  virtual JudgeAnswer begin(const Reference& reference, const TraceFile& trace, const KernelSet& kernels) = 0;
  // Runs one case on inputs that the judge draws, and has the outputs judged. `own` is charged with what processes of
  // the candidate's own compute for (a GPU is shared: nothing there is), and may end them; null = nobody asks.
  // REQUIRES: begin() passed.
  virtual JudgeAnswer run(const JudgeRun& run, OwnTime* own) = 0;
  // Takes readings until the protocol has enough. REQUIRES: can_time(), begin() passed.
  virtual TimeAnswer time(JudgeTiming timing, const TimingProtocol& protocol) = 0;
};

}  // namespace tritonrl
