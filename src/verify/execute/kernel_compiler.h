// SPDX-License-Identifier: Apache-2.0
// KernelCompiler: cubins that a trace has no hand in.
//
// A trace comes out of a process that ran the candidate's host code, so what it says a kernel compiles to is worth
// nothing. It names texts and specialisations (TraceSpec); this turns them into cubins with `compile` jobs, in
// processes that see a kernel's text and nothing else, and remembers them by a key that is computed here. The same text
// under the same specialisation is compiled once in a run, whichever candidates it came from.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/once_cache.h"
#include "verify/finding.h"
#include "verify/sandbox/fork_server.h"
#include "verify/sandbox/own_time.h"
#include "verify/trace/bundle.h"

namespace tritonrl {

// The arguments of a `compile` job: the kernels that spec number `spec` needs, renumbered, and the spec.
struct CompileArguments {
  Json kernels, spec;
  // Of all that the cubin depends on; lines are left out. No candidate can make a text that has another's.
  std::string key() const;
};
CompileArguments compile_arguments(const TraceFile& trace, size_t spec);

class KernelCompiler {
 public:
  // Runs a job, which compiles the kernel of that key; leaves its blob in *blob when it ended with a pass, and charges
  // the candidate for it. Called from several threads at once.
  using RunJob = std::function<Finding(Job job, Blob* blob, const std::string& kernel)>;

  explicit KernelCompiler(int64_t cache_bytes = int64_t{512} << 20);

  // Compiles what the launches of `cases` need, several at a time, each in `deadline_s` at most. An autotuner's
  // configurations may fail as long as one is left; else the first one's failure is returned. `own` is charged for
  // kernels that were known, too. `compiler_s` becomes the seconds that Triton's compiler says it took (0 for what was
  // known). Thread rule: any thread.
  Finding compile(const TraceFile& file, const std::vector<const CaseTrace*>& cases, double deadline_s,
                  const RunJob& run, OwnTime* own, KernelSet* kernels, double* compiler_s = nullptr);

  int64_t hits() const { return hits_; }
  int64_t compiled() const { return compiled_; }

 private:
  struct Result {
    std::shared_ptr<const CompiledKernel> kernel;
    Finding ended;
    double seconds = 0;
    double own_s = 0;  // What it was charged with when it was compiled.
  };
  Result compile_one(const TraceFile& trace, size_t spec, double deadline_s, const RunJob& run, OwnTime* own);
  Result run_job(const CompileArguments& wanted, const std::string& key, double deadline_s, const RunJob& run) const;

  OnceCache<std::string, Result> results_;
  std::atomic<int64_t> hits_ = 0, compiled_ = 0;
};

}  // namespace tritonrl
