// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/job_run.h"

#include <signal.h>

#include <cmath>
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

// How a child ended that sent nothing usable, which had so many seconds of processor time. `saw_inputs`: what it wrote
// is not for the policy.
Finding judge_exit(const JobAnswer& answer, double processor_limit_s, bool saw_inputs) {
  using Status = JobAnswer::Status;
  switch (answer.status) {
    case Status::kLost:
    case Status::kForkFailed:
    case Status::kKilled:
      return {Rule::kVerifierFailed, answer.fault.empty() ? "the worker gave the job up" : answer.fault};
    case Status::kDeadline:
      return with_secret(Rule::kDeadline, cat("not finished after ", human_seconds(answer.seconds)));
    case Status::kOverflow:
      return Rule::kResultTooLarge;
    case Status::kSignaled:
      if (answer.code == SIGXCPU) return Rule::kProcessorTime;
      if (answer.code == SIGKILL) {
        bool used_up = answer.processor_s > kUsedUp * processor_limit_s;
        return used_up ? Rule::kProcessorTime : Rule::kMemoryCap;
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
  if (own && own->late()) return own->finding();
  bool limited = own && std::isfinite(own->left());
  if (limited) job.processor_s = own->left();
  double limit = job.processor_limit_s();
  JobAnswer answer = pool.run(kind, std::move(job));
  Finding ended = judge_exit(answer, limit, kind == ForkServerKind::kInterpret);
  if (own && ended.outcome() != Outcome::kHarnessFault) {
    own->add(answer.processor_s, kernel);
    // Whatever came of it, it came too late.
    if (own->late() || (limited && ended.rule() == Rule::kProcessorTime)) return own->finding();
  }
  if (!ended.passed()) return ended;
  auto parsed = parse_blob(std::move(answer.result), answer.nonce);
  if (!parsed) return {Rule::kForgedResult, parsed.why};
  if (parsed.value->failure) return *parsed.value->failure;
  *blob = std::move(*parsed.value);
  return {};
}

}  // namespace tritonrl
