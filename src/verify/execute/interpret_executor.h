// SPDX-License-Identifier: Apache-2.0
// InterpretExecutor: a candidate without a GPU; see executor.h.
//
// For each run the judge hands out weights and inputs, a sandboxed child (worker/interpret.py) that sees nothing else
// walks the trace on them, and what it sends goes to the judge. A judge is held for its own questions only, never
// while a child runs, so that few of them serve many candidates.
//
// Weights that the judge does not know by their names are made by a child as well, once a case: it runs __init__'s
// section of the trace, and once more where others are made of those that the judge recognised (trace/init_values.h).
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
  JudgeAnswer begin(const Reference& reference, const TraceFile& trace, const KernelSet& kernels) override;
  void expect(std::vector<JudgeRun> runs) override { expected_ = std::move(runs); }
  JudgeAnswer run(const JudgeRun& run, OwnTime* own) override;
  TimeAnswer time(JudgeTiming timing, const TimingProtocol& protocol) override;

 private:
  // What forward() finds of its __init__.
  struct Weight {
    int64_t value = -1;
    std::string name;                    // "" = no parameter.
    std::optional<std::string> initial;  // As __init__ left it; none = the task's, which has the name.
  };
  struct Weights {
    std::vector<Weight> given;
    std::vector<int64_t> views;  // Of these.
  };
  // What a child sent for a run: the question to the judge, and the tensors that go with it.
  struct Ran {
    Json question;
    std::string tensors;
  };
  JudgeAnswer ask(const char* what, const JudgeRun& run, const Json& question, const std::string& payload);
  Json arguments(const JudgeRun& run, const Json& given) const;
  // Of the case that is run, from weights_. A pass, or why there are none.
  JudgeAnswer make_weights(const JudgeRun& run, OwnTime* own);
  // Has a child run __init__ with `pins` (value, index among `given`'s parameters) in place; the bytes of `want`.
  Finding run_init(const JudgeRun& run, const std::map<int64_t, size_t>& pins, const JudgeAnswer& given,
                   const std::vector<int64_t>& want, OwnTime* own, std::map<int64_t, std::string>* made);
  // The judge's inputs for a run on weights_.
  JudgeAnswer ask_for_inputs(const JudgeRun& run, OwnTime* own);
  // What is there to say of the first of them already; nothing = see ran_.
  std::optional<JudgeAnswer> run_together(OwnTime* own, double deadline_s);

  WorkerPool& pool_;
  JudgeSlots& judges_;
  InterpreterLimits limits_;
  const Reference* reference_ = nullptr;
  const TraceFile* trace_ = nullptr;
  std::map<std::string, Weights> weights_;  // By case of the trace.
  std::vector<JudgeRun> expected_;
  std::map<uint64_t, Ran> ran_;               // By poison: runs that are done and not asked for yet,
  std::map<uint64_t, JudgeAnswer> answered_;  // ... and those for which the judge has no inputs.
};

}  // namespace tritonrl
