// SPDX-License-Identifier: Apache-2.0
// InterpretExecutor: a candidate without a GPU; see executor.h.
//
// For each run the judge hands out weights and inputs, a sandboxed child (worker/interpret.py) that sees nothing else
// walks the trace on them, and what it sends goes to the judge. A judge is held for its own questions only, never
// while a child runs, so that few of them serve many candidates.
#pragma once

#include "verify/execute/executor.h"
#include "verify/sandbox/fork_server.h"

namespace tritonrl {

struct InterpreterLimits {
  int64_t memory_bytes = int64_t{4} << 30;  // Of a child.
  int64_t max_programs = 200000;            // Program instances in one run of the original case.
  double reference_deadline_s = 120;        // For the judge's part of a run: its work is the reference's.
};

class InterpretExecutor : public Executor {
 public:
  InterpretExecutor(WorkerPool& pool, JudgeSlots& judges, InterpreterLimits limits)
      : pool_(pool), judges_(judges), limits_(limits) {}

  VerifyPath path() const override { return VerifyPath::kInterpreter; }
  bool can_time() const override { return false; }
  bool runs_cubins() const override { return false; }
  double most_growth() const override { return 8; }  // Half as large again in five dimensions is 7.6.
  bool replays_init() const override { return false; }
  JudgeAnswer begin(const Reference& reference, const TraceFile& trace, const KernelSet& kernels) override;
  JudgeAnswer run(const JudgeRun& run, OwnTime* own) override;
  TimeAnswer time(JudgeTiming timing, const TimingProtocol& protocol) override;

 private:
  WorkerPool& pool_;
  JudgeSlots& judges_;
  InterpreterLimits limits_;
  const Reference* reference_ = nullptr;
  const TraceFile* trace_ = nullptr;
};

}  // namespace tritonrl
