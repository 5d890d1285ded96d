// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/job_run.h"

#include <signal.h>

#include <cstring>

#include "base/text.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxJobHeader = (1 << 20) - 4096;  // A frame's limits, less what the pool adds.
constexpr size_t kMaxJobPayload = 1 << 30;
// The kernel counts ticks against a limit, and says what was used to the nanosecond: on a busy machine a tenth less or
// more.
constexpr double kUsedUp = 0.8;

// How a child ended that sent nothing usable. `saw_inputs`: what it wrote is not for the policy.
Finding judge_exit(const JobAnswer& answer, double deadline_s, bool saw_inputs) {
  using Status = JobAnswer::Status;
  switch (answer.status) {
    case Status::kLost:
    case Status::kForkFailed:
    case Status::kKilled:
      return {Rule::kVerifierFailed, answer.fault.empty() ? "the worker gave the job up" : answer.fault};
    case Status::kStarved:
      return {Rule::kVerifierFailed, cat("this machine gave it ", human_seconds(answer.own_s), " in ",
                                         human_seconds(answer.seconds), ", too little to end")};
    case Status::kDeadline:
      return with_secret(Rule::kDeadline, cat("not finished after ", human_seconds(answer.own_s)));
    case Status::kMemory:
      return Rule::kMemoryCap;
    case Status::kOverflow:
      return Rule::kResultTooLarge;
    case Status::kSignaled:
      if (answer.code == SIGXCPU) return Rule::kProcessorTime;
      if (answer.code == SIGKILL) {
        if (answer.processor_s > kUsedUp * deadline_s) return Rule::kProcessorTime;
        // It cannot do that to itself, and its memory and time were within their limits.
        return {Rule::kVerifierFailed, "it was killed from outside"};
      }
      return {Rule::kProcessEnded,
              cat("the process was ended by signal ", answer.code, " (", strsignal(answer.code), ")")};
    case Status::kExited:
      break;
  }
  if (answer.code == 0 && !answer.result.empty()) return {};
  if (answer.stderr_tail.find("MemoryError") != std::string::npos) return Rule::kOutOfMemory;
  std::string ended = cat("the process ended with exit code ", answer.code, " and without a result");
  std::string said = trim(answer.stderr_tail);
  if (said.empty()) return {Rule::kProcessEnded, ended};
  said = "it said: " + said;
  return saw_inputs ? with_secret({Rule::kProcessEnded, ended}, said)
                    : Finding(Rule::kProcessEnded, cat(ended, "; ", said));
}

}  // namespace

Finding run_job(WorkerPool& pool, ForkServerKind kind, Job job, Blob* blob, OwnTime* own, const std::string& kernel) {
  if (job.args.dump(-1, ' ', false, Json::error_handler_t::replace).size() > kMaxJobHeader) {
    return {Rule::kTooLarge, "the code, or the list of its parameters, is too large"};
  }
  if (job.payload.size() > kMaxJobPayload) return {Rule::kTooLarge, "the trace and its tensors are too large"};
  if (own && (own->over() || own->left(!kernel.empty()) <= 0)) return own->finding();
  bool limited = own && own->left(!kernel.empty()) < job.deadline_s;
  if (limited) job.deadline_s = own->left(!kernel.empty());
  double deadline_s = job.deadline_s;
  auto memory = static_cast<double>(job.memory_bytes);
  JobAnswer answer = pool.run(kind, std::move(job));
  Finding ended = judge_exit(answer, deadline_s, kind == ForkServerKind::kInterpret);
  // The kernel takes jobs first when the machine runs out of memory, or a part of one, and which is chance.
  bool starved_by_others = answer.machine_ran_out && static_cast<double>(answer.peak_bytes) <= memory;
  Finding ran_out(Rule::kVerifierFailed, "this machine ran out of memory while it ran");
  if (!ended.passed() && starved_by_others) return ran_out;
  if (own && ended.outcome() != Outcome::kHarnessFault) {
    own->add(answer.own_s, kernel);
    // Whatever came of it, it came too late.
    if (own->over() || (limited && ended.outcome() == Outcome::kTimeout)) return own->finding();
  }
  if (!ended.passed()) return ended;
  auto parsed = parse_blob(std::move(answer.result), answer.nonce);
  if (!parsed) return {Rule::kForgedResult, parsed.why};
  if (parsed.value->failure) return starved_by_others ? ran_out : *parsed.value->failure;
  *blob = std::move(*parsed.value);
  return {};
}

}  // namespace tritonrl
