// SPDX-License-Identifier: Apache-2.0
#include "verify/job_run.h"

#include <signal.h>

#include <cstring>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxJobHeader = (1 << 20) - 4096;  // A frame's limits, less what the pool adds.
constexpr size_t kMaxJobPayload = 1 << 30;

// How a child ended that sent nothing usable.
StageEnd judge_exit(const JobAnswer& answer) {
  using Status = JobAnswer::Status;
  switch (answer.status) {
    case Status::kLost:
    case Status::kForkFailed:
    case Status::kKilled:
      return {Outcome::kHarnessFault, answer.fault.empty() ? "the worker gave the job up" : answer.fault};
    case Status::kDeadline:
      return {Outcome::kTimeout, cat("not finished after ", human_seconds(answer.seconds))};
    case Status::kOverflow:
      return {Outcome::kOutOfMemory, "the result is too large"};
    case Status::kSignaled:
      if (answer.code == SIGKILL) return {Outcome::kOutOfMemory, "the process was killed for its use of memory"};
      if (answer.code == SIGXCPU) return {Outcome::kTimeout, "the limit on processor time was reached"};
      return {Outcome::kRuntimeError,
              cat("the process was ended by signal ", answer.code, " (", strsignal(answer.code), ")")};
    case Status::kExited:
      break;
  }
  if (answer.code == 0 && !answer.result.empty()) return {};
  if (answer.stderr_tail.find("MemoryError") != std::string::npos) return {Outcome::kOutOfMemory, "out of memory"};
  std::string said = trim(answer.stderr_tail);
  return {Outcome::kRuntimeError, cat("the process ended with exit code ", answer.code, " and without a result",
                                      said.empty() ? "" : cat("; it said: ", said))};
}

}  // namespace

StageEnd run_job(WorkerPool& pool, ZygoteKind kind, Job job, Blob* blob) {
  if (job.args.dump(-1, ' ', false, Json::error_handler_t::replace).size() > kMaxJobHeader) {
    return {Outcome::kUnsupported, "the code, or the list of its parameters, is too large"};
  }
  if (job.payload.size() > kMaxJobPayload) {
    return {Outcome::kUnsupported, "the recording and its tensors are too large"};
  }
  JobAnswer answer = pool.run(kind, std::move(job));
  StageEnd ended = judge_exit(answer);
  if (ended.outcome != Outcome::kPass) return ended;
  auto parsed = parse_blob(std::move(answer.result), answer.nonce);
  if (!parsed) return {Outcome::kTampered, parsed.why};
  if (const auto& failure = parsed.value->failure) {
    auto outcome = outcome_from_string(failure->kind);
    CHECK(outcome.has_value()) << failure->kind;
    return {*outcome, failure->message};
  }
  *blob = std::move(*parsed.value);
  return {};
}

}  // namespace tritonrl
