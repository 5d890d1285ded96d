// SPDX-License-Identifier: Apache-2.0
// GPU path: the funnel's stages where there is a GPU. Same stages, same outcomes as the interpreter's path, other
// means:
//
//   compile   the reference and the candidate are recorded, and the candidate's kernels compiled; nothing is run
//   tiny_run  the tiny case replayed on one secret input, and once more without its launches (the kill switch)
//   full_run  every other case on its secret inputs, the first once more among other garbage
//   time      reference and candidate interleaved on different inputs, the timed outputs judged once more
//
// One candidate holds one GPU from tiny_run to time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "verify/case_run.h"
#include "verify/gpu_lane.h"
#include "verify/kernel_compiler.h"
#include "verify/plan.h"
#include "verify/reference.h"
#include "verify/timing_protocol.h"

namespace tritonrl {

struct GpuTools {
  GpuLanes* lanes = nullptr;
  ReferenceCache* references = nullptr;
  const TimingProtocol* timing = nullptr;
};

// What the judge found out about a task; see verify/gpu/task_lint.h.
struct TaskFindings {
  std::vector<std::pair<std::string, std::string>> flags;  // Flag, detail.
  int64_t drops_tried = 0, drops_impossible = 0;
};

class GpuPath {
 public:
  // run_record: answers a `record` job with the blob that holds the recording, or says how it ended.
  using RunRecord = std::function<Finding(Json args, Blob* blob)>;
  GpuPath(const GpuTools& tools, const Task& task, std::vector<CaseSpec> cases, int64_t weight_seed, Rng inputs,
          Rng poison);

  Finding record(const std::string& code, const RunRecord& run_record);
  void set_kernels(KernelSet kernels) { kernels_ = std::move(kernels); }  // Of the recording's specs.
  // The candidate failed in an additional case before it could be run: in compiling its kernels, say.
  void settle(const CaseSpec& spec, const Finding& failed);
  Finding lease();  // Waits for a GPU; the stages below do it themselves.
  Finding tiny_run(double deadline_s);
  Finding full_run(double deadline_s, bool with_kill_switch);
  Finding time(double deadline_s);
  // Instead of all that: the task itself, its reference on its first case that is not tiny. Needs no candidate.
  Finding lint(double deadline_s, TaskFindings* found);

  const PlanFile& recording() const { return recording_; }
  const std::vector<CaseSpec>& cases() const { return cases_; }
  const std::vector<CaseResult>& results() const { return results_; }  // Of the cases run so far.
  bool worth_another_try() const { return lost_; }
  // Why the task's reference fails; "" = it does not.
  const std::string& task_failure() const { return task_failure_; }
  bool ran() const { return ran_; }
  const std::optional<TimingResult>& timing() const { return timing_; }
  double triton_share() const { return triton_share_; }

 private:
  Finding replay(const CaseSpec& spec, int64_t seed_index, double until, bool launches);
  void run_case(const CaseSpec& spec, double until, bool twice, bool with_kill_switch);
  Finding without_triton(const CaseSpec& spec, double until);
  int64_t input_seed(const CaseSpec& spec, int64_t index) const;
  Finding end(const GpuAnswer& answer);
  Finding ask_for_reference();
  const CaseSpec& main_case() const;

  const GpuTools& tools_;
  const Task& task_;
  std::vector<CaseSpec> cases_;
  int64_t weight_seed_;
  Rng inputs_, poison_;
  std::shared_ptr<const Reference> reference_;
  std::string code_;
  PlanFile recording_;
  SettledCases settled_;
  std::vector<CaseResult> results_;
  CaseResult* at_ = nullptr;  // The one being run.
  KernelSet kernels_;
  std::optional<GpuLease> lane_;
  bool lost_ = false, ran_ = false;
  std::string task_failure_;
  std::optional<TimingResult> timing_;
  double triton_share_ = 0;
};

}  // namespace tritonrl
