// SPDX-License-Identifier: Apache-2.0
// Stages: takes one candidate through the stages and records each of them.
//
//   extract -> syntax -> compile -> tiny_run -> full_run -> time
//
// In `compile` the candidate is recorded (execute/execution.h): its host code runs on fake tensors, and the trace is
// parsed and held against the reference's and against the call rules. Then a `compile` job for each kernel makes it a
// real cubin, from its text alone (execute/kernel_compiler.h). The stages after it are those of execution.h, on a GPU
// or through Triton's interpreter; where nothing can measure it, there is no stage `time`.
//
// Stages never throws for anything a candidate does: that is what Outcome is for. kHarnessFault means *we* failed (a
// lost worker, a task whose reference does not run); it must not become a reward.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "verify/execute/case_source.h"
#include "verify/execute/execution.h"
#include "verify/execute/kernel_compiler.h"
#include "verify/execute/timing_protocol.h"
#include "verify/sandbox/fork_server.h"
#include "verify/stage_order.h"
#include "verify/trace/call_rules.h"
#include "verify/verdict.h"

namespace tritonrl {

struct VerifyConfig {
  CallRules call_rules = CallRules::kStrict;  // What library calls of a candidate mean.
  Tolerance tolerance = Tolerance::kTf32;     // Of float32 products; execute/compare.h.
  std::vector<Stage> skip_stages;             // Ablations only.
  int64_t workers = 0;                        // Candidates at a time; 0 = one per core.
  int64_t seeds_per_case = 2;                 // Secret inputs in full_run.
  int64_t seed = 0;  // Of the secret streams; 0 = from the kernel. Else a large random number: a
                     // small one can be guessed, and with it the inputs.
  // Deadlines are seconds on a job's own clock (sandbox/own_time.h), which load does not move; what runs on a GPU has
  // the wall's.
  double record_deadline_s = 8;    // Host code takes hundredths of a second; what never ends must not hold the others.
  double compile_deadline_s = 30;  // A Triton compile takes 0.2-0.7 s of a core, an autotuner many of them.
  double tiny_deadline_s = 20;
  double full_deadline_s = 60;
  double reference_deadline_s = 120;  // For a reference, which is trusted more.
  double time_deadline_s = 60;
  int64_t gpus = -1;              // How many GPUs to verify on; -1 = all there are, 0 = none.
  int64_t arch = 90;              // What kernels are compiled for where no GPU says it: 90 = compute capability 9.0.
  int64_t judges_per_gpu = 1;     // Candidates that run on a GPU beside each other.
  int64_t memory_mb = 4096;       // Per sandboxed job, all its processes and files, beyond what it starts with.
  int64_t max_programs = 200000;  // Program instances in one interpreted trace (about 1 ms each).
  bool allow_weaker_sandbox = false;
  std::string python;  // Interpreter with torch and triton; "" = the one of the build.

  template <class V>
  void for_each_field(V& v) {
    v("call_rules", call_rules, "library calls of a candidate: forbidden, or allowed and listed");
    v.renamed("policy", "verify.call_rules");
    v("tolerance", tolerance,
      "what outputs are held to: fp32; tf32 = the same, but products of float32 matrices may be in TF32 (tl.dot's "
      "default); kernelbench = its atol and rtol");
    v("skip_stages", skip_stages, "stages to leave out, by name (ablations)");
    v("workers", workers, "candidates verified at a time; 0 = one per core");
    v("seeds_per_case", seeds_per_case, "secret inputs each candidate is run on");
    v("seed", seed, "seed of the secret inputs, a random number of 2^32 or more; 0 = drawn from the kernel");
    v("record_deadline_s", record_deadline_s,
      "seconds for importing and recording, where nothing is compiled; like those below on the candidate's own clock: "
      "processor time and sleep, not waiting for a processor");
    v("compile_deadline_s", compile_deadline_s, "seconds for importing, recording and compiling");
    v("tiny_deadline_s", tiny_deadline_s, "seconds for tiny_run (wall clock on a GPU)");
    v("full_deadline_s", full_deadline_s, "seconds for full_run (wall clock on a GPU)");
    v("reference_deadline_s", reference_deadline_s, "seconds for a task's reference");
    v.renamed("oracle_deadline_s", "verify.reference_deadline_s");
    v("time_deadline_s", time_deadline_s, "seconds for time");
    v("gpus", gpus, "GPUs to verify on: -1 = all there are; 0 = none, correctness is decided by the interpreter");
    v("arch", arch,
      "what kernels are compiled for where none is used: 80, 86, 89, 90, 100, 103 or 120; on GPUs it is theirs");
    v("judges_per_gpu", judges_per_gpu,
      "candidates that run on a GPU beside each other, each with processes of its own (about 2 GB); one that is timed "
      "has "
      "it alone");
    v("memory_mb", memory_mb, "MiB a sandboxed job, all its processes and files together, may hold");
    v("max_programs", max_programs, "program instances one interpreted trace may launch");
    v("allow_weaker_sandbox", allow_weaker_sandbox, "continue where the sandbox is incomplete; verdicts say so");
    v("python", python, "Python interpreter with torch and triton; empty = the one of the build");
  }
  void validate() const;  // Throws Error (usage).
};

struct Candidate {
  std::string id;
  Task task;
  std::string text;      // A policy's answer, or
  bool is_code = false;  // ... a plain Python file, which needs no extraction.
  bool timed = true;     // false: where only correctness is asked, on a GPU the stage `time` is left out.
};

// Own time (sandbox/own_time.h) that a candidate may take in a stage, in seconds; where there is none, the stage's
// deadline alone counts.
using OwnLimits = std::map<Stage, double>;

class Stages {
 public:
  // Borrows everything; all must outlive it. Thread rule: verify() may be called from any number of threads.
  Stages(const VerifyConfig& config, WorkerPool& pool, const CaseSource& cases, const StageOrder& order,
         ExecutionTools tools, int64_t secret_seed, std::vector<std::string> sandbox_missing);

  // Blocks. A harness fault that may be bad luck (a lost worker or judge) is tried once more.
  Verdict verify(const Candidate& candidate, const OwnLimits& limits = {}) const;

  const KernelCompiler& compiler() const { return compiler_; }

 private:
  friend class CandidateRun;
  const VerifyConfig& config_;
  WorkerPool& pool_;
  const CaseSource& cases_;
  const StageOrder& order_;
  ExecutionTools tools_;
  mutable KernelCompiler compiler_;
  int64_t secret_seed_;
  std::vector<std::string> sandbox_missing_;
};

}  // namespace tritonrl
