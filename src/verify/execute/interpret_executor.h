// SPDX-License-Identifier: Apache-2.0
// InterpretExecutor: a candidate without a GPU; see executor.h.
//
// For each run the judge hands out weights and inputs, a sandboxed child (worker/interpret.py) that sees nothing else
// walks the trace on them, and what it sends goes to the judge. A judge is held for its own questions only, never
// while a child runs, so that few of them serve many candidates.
//
// Small runs that are known beforehand share a child, which does them one after the other: a fork and the making of the
// kernels cost more than most of them. What comes of it is as if each had been alone. Where anything is amiss with such
// a job, or with one of its runs, that is forgotten, charged to nobody, and what is missing is run alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  void expect(std::vector<JudgeRun> runs) override { expected_ = std::move(runs); }
  JudgeAnswer run(const JudgeRun& run, OwnTime* own) override;
  TimeAnswer time(JudgeTiming timing, const TimingProtocol& protocol) override;

 private:
  // What a child sent for a run: the question to the judge, and the tensors that go with it.
  struct Ran {
    Json question;
    std::string tensors;
  };
  JudgeAnswer ask(const char* what, const JudgeRun& run, const Json& question, const std::string& payload);
  Json arguments(const JudgeRun& run, const Json& given) const;
  // What is there to say of the first of them already; nothing = see ran_.
  std::optional<JudgeAnswer> run_together(OwnTime* own, double deadline_s);

  WorkerPool& pool_;
  JudgeSlots& judges_;
  InterpreterLimits limits_;
  const Reference* reference_ = nullptr;
  const TraceFile* trace_ = nullptr;
  std::vector<JudgeRun> expected_;
  std::map<uint64_t, Ran> ran_;               // By poison: runs that are done and not asked for yet,
  std::map<uint64_t, JudgeAnswer> answered_;  // ... and those for which the judge has no inputs.
};

}  // namespace tritonrl
