// SPDX-License-Identifier: Apache-2.0
// Execution: the stages of a candidate from its trace on, whatever executes it (executor.h).
//
//   record    first half of stage compile: the task's reference is recorded, and the candidate against its shapes; host
//             code runs on fake tensors, no kernel is run
//   tiny_run  the tiny case (the original where there is none) on one secret input, and once more without its launches:
//             when that gives the right answer too, Triton did nothing and the rules are broken. Where something is
//             kept from call to call, further calls on other inputs are judged, with what the first ones left, and
//             so is every configuration of an autotuner (choices.h)
//   full_run  every case but the tiny one on its secret inputs, the first once more among other garbage in fresh
//             memory, and its further calls as above
//   time      reference and candidate interleaved on different inputs, the timed outputs judged once more; where an
//             autotuner chose, every case is run again with its choice
//
// Only `record` runs the candidate's host code. Thread rule: one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "verify/execute/case_run.h"
#include "verify/execute/executor.h"
#include "verify/execute/timing_protocol.h"
#include "verify/trace/reference.h"
#include "verify/trace/trace.h"

namespace tritonrl {

struct ExecutionTools {
  Tolerance tolerance = Tolerance::kTf32;
  JudgeSlots* judges = nullptr;
  ReferenceCache* references = nullptr;
  const TimingProtocol* timing = nullptr;
  bool strict = true;  // Library calls may not do the work (trace/call_rules.h).
  std::function<std::unique_ptr<Executor>()> executor;
  std::function<TargetGpu()> target = nullptr;  // What the next candidate is compiled for; null = an H100.
};

// What the judge found out about a task; see verify/judge/task_lint.h.
struct TaskFindings {
  std::vector<std::pair<std::string, std::string>> flags;  // Flag, detail.
  int64_t drops_tried = 0, drops_impossible = 0;
  bool out_of_memory = false;  // It fails for want of memory.
};

// Two secrets that have nothing to do with each other. Whoever runs __init__'s section of a candidate's trace is told
// the first, and draws what the reference's does.
struct WeightSeeds {
  int64_t init = 0;   // Of what __init__ draws.
  int64_t noise = 0;  // Of what moves weights that are constants (those of a norm) away from them.
};

// How the recorder names the cases that hold all calls up to one (worker/further_calls.py): behind the case's name.
inline constexpr std::pair<size_t, const char*> kFurtherCalls[] = {{2, ".again"}, {3, ".third"}};
// Is it the trace of a case, or of one with further calls?
inline bool is_call_of(const CaseTrace& trace, const CaseSpec& spec) {
  return trace.name == spec.name || std::ranges::any_of(kFurtherCalls, [&](const auto& further) {
           return trace.name == spec.name + further.second;
         });
}

class Execution {
 public:
  // run_record: answers a `record` job with the blob that holds the trace, or says how it ended.
  using RunRecord = std::function<Finding(Json args, Blob* blob)>;
  Execution(const ExecutionTools& tools, const Task& task, std::vector<CaseSpec> cases, WeightSeeds weights, Rng inputs,
            Rng poison);

  Finding record(const std::string& code, const RunRecord& run_record);
  void set_kernels(KernelSet kernels) { kernels_ = std::move(kernels); }  // Of the trace's specs.
  // Who is charged with what the candidate's processes compute for from now on; null = nobody asks.
  void charge(OwnTime* own) { own_ = own; }
  // The candidate failed in an additional case before it could be run: in compiling its kernels, say.
  void decide(const CaseSpec& spec, const Finding& failed);
  Finding begin();  // Waits for what it is executed on; the stages below do it themselves.
  Finding tiny_run(double deadline_s);
  Finding full_run(double deadline_s, bool also_without_launches);
  Finding time(double deadline_s);
  // Instead of all that: the task itself, its reference on case `index`; seeds 0 and 1 of its inputs, or where those
  // were looked at already, 1 and 0. Needs no candidate. `drops`: every operation is left out in turn, too.
  Finding lint(double deadline_s, TaskFindings* found, size_t index = 0, bool other_seed = false, bool drops = true);

  const Executor& executor() const { return *executor_; }
  const TargetGpu& target() const { return target_; }  // That kernels are compiled for.
  const TraceFile& trace() const { return trace_; }
  // The reference's trace of a case; null where it has none. REQUIRES: record() passed.
  const CaseTrace* reference_trace(const CaseSpec& spec) const { return reference_->file.find(spec.recorded_as()); }
  const std::vector<CaseSpec>& cases() const { return cases_; }
  const std::vector<CaseResult>& results() const { return results_; }  // Of the cases run so far.
  bool worth_another_try() const { return lost_; }
  // Why the task's reference fails; "" = it does not.
  const std::string& task_failure() const { return task_failure_; }
  bool ran() const { return ran_; }
  // What the outputs of the task as written were held to; empty = nothing was compared.
  std::optional<Tolerance> tolerance() const { return tolerance_; }
  const std::optional<TimingResult>& timing() const { return timing_; }
  double triton_share() const { return triton_share_; }
  // Configurations of an autotuner that were not run: too many, or not to be run here.
  const std::vector<std::string>& choices_not_run() const { return choices_not_run_; }
  // forward() keeps something from call to call: further calls were judged, too.
  bool keeps_state() const { return keeps_state_; }

 private:
  // What else a run may be; see JudgeRun.
  struct Variation {
    std::vector<int64_t> earlier;  // Seed indices of the calls before the one that is judged.
    std::string calls;
    std::vector<int64_t> choices;
  };
  using ExpectedRuns = std::map<std::tuple<std::string, int64_t, bool>, JudgeRun>;  // By case, seed index, launches.
  std::vector<int64_t> choice_for(const CaseSpec& spec, int64_t seed_index) const;
  JudgeRun planned(const CaseSpec& spec, int64_t seed_index, bool launches, const Variation& as);
  void expect(const std::vector<std::tuple<const CaseSpec*, int64_t, bool>>& runs);
  void expect_the_rest(const CaseSpec& original);
  Finding run(const CaseSpec& spec, int64_t seed_index, double until, bool launches, const Variation& as);
  Finding run(const CaseSpec& spec, int64_t seed_index, double until, bool launches) {
    return run(spec, seed_index, until, launches, {});
  }
  Finding call_again(const CaseSpec& spec, double until);
  // `one_s`: what a run with the first configuration takes.
  Finding other_choices(const CaseSpec& spec, double until, double one_s);
  Finding with_chosen(const std::vector<int64_t>& chosen, double deadline_s);
  void run_case(const CaseSpec& spec, double until, bool twice, bool also_without_launches);
  Finding without_triton(const CaseSpec& spec, double until);
  // A part that may take so long begins; when it is to end by the wall's clock, which holds on a GPU. Jobs of the
  // interpreter have their own.
  double begins(double deadline_s);
  double left(double until) const;  // For a run that begins now.
  bool has_tiny() const;
  int64_t input_seed(const CaseSpec& spec, int64_t index) const;
  Finding end(const JudgeAnswer& answer);
  Finding ask_for_reference();
  Finding unusable(const std::string& why);
  void skip(const CaseSpec& spec, const std::string& why);
  double growth(const CaseSpec& spec) const;
  Products multiplies(const CaseSpec& spec) const;
  Json cases_to_record();
  // Why a trace cannot be honest; "" = it can. Decides the additional cases that it says the candidate fails in.
  std::string take(const Blob& blob, const Json& asked);

  const ExecutionTools& tools_;
  const Task& task_;
  std::vector<CaseSpec> cases_;
  WeightSeeds weights_;
  Rng inputs_, poison_;
  std::unique_ptr<Executor> executor_;
  TargetGpu target_;
  std::shared_ptr<const Reference> reference_;
  TraceFile trace_;
  DecidedCases decided_;
  std::vector<CaseResult> results_;
  CaseResult* at_ = nullptr;  // The one being run.
  KernelSet kernels_;
  OwnTime* own_ = nullptr;
  ExpectedRuns expected_;
  uint64_t runs_ = 0;
  bool lost_ = false, ran_ = false;
  double waited_s_ = 0;            // For others who share the GPU, in all: on nobody's clock.
  double took_s_ = 0;              // The last run, on the clock of its deadline.
  bool kept_ = false;              // The last run left state changed.
  std::optional<double> written_;  // Of the last run without launches: see the judge's answer.
  std::vector<std::string> choices_not_run_;
  bool keeps_state_ = false;
  std::string task_failure_;
  std::optional<Tolerance> tolerance_;
  std::optional<TimingResult> timing_;
  double triton_share_ = 0;
};

}  // namespace tritonrl
