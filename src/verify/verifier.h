// SPDX-License-Identifier: Apache-2.0
// Verifier: the verify room's front door. Text in, verdicts out.
//
//   auto verifier = Verifier::open(config);
//   std::vector<Verdict> verdicts = verifier->verify(candidates);
//
// Where there is a GPU, candidates are replayed and timed there, else they are interpreted (execute/executor.h).
//
// Owns two warm fork servers (Python with torch and triton, about 650 MB each, mostly shared with their children), the
// judges (verify/judge/judge.h), the secret seeds and the traces of references. Opening takes about three seconds and
// puts the sandbox to the test first.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/process/shared_device.h"
#include "verify/sandbox/sandbox.h"
#include "verify/stages.h"
#include "verify/verify_stream.h"

namespace tritonrl {

// What may be put in place of core's defaults; null = the default.
struct VerifySeams {
  std::shared_ptr<const CaseSource> cases;
  std::shared_ptr<const StageOrder> order;
  std::shared_ptr<const TimingProtocol> timing;
};

class Verifier {
 public:
  // Weights of traces that are only looked at: no secret, nothing is judged by them.
  static constexpr int64_t kRecordSeed = 1;

  // What open() refuses for reasons of the machine, found out in a fraction of a second: an incomplete sandbox, GPUs
  // that are not there. Throws Error (environment).
  static void check(const VerifyConfig& config);
  // Throws Error (environment) when the sandbox is incomplete and the config does not allow that, or when the Python
  // side does not start; Error (usage) for a bad config.
  static std::unique_ptr<Verifier> open(VerifyConfig config, VerifySeams seams = {});
  // Without a GPU, over a given pool and judges (tests).
  static std::unique_ptr<Verifier> over(std::unique_ptr<WorkerPool> pool, std::unique_ptr<JudgeSlots> judges,
                                        VerifyConfig config, VerifySeams seams = {});

  // Blocks until every candidate has a verdict (a harness fault where something of ours throws); order of results =
  // order of input. A harness fault that may be bad luck is tried once more. Candidates with the same task and text are
  // verified once. `progress` gets the number done so far, from one thread at a time. When asked to stop
  // (base/process/interrupt.h), finishes the candidates that are under way and throws Interrupted if others are left.
  std::vector<Verdict> verify(std::span<const Candidate> candidates,
                              const std::function<void(int64_t done)>& progress = {});
  // The same, handing each verdict over as soon as it is there (from one thread at a time). An exception thrown by
  // `on_verdict` ends the batch and comes out of this call.
  void verify_each(std::span<const Candidate> candidates,
                   const std::function<void(size_t index, Verdict verdict)>& on_verdict);

  // As verify(), for the solutions that come with tasks: are they correct? Nothing is timed.
  // REQUIRES: every task has one.
  std::vector<Verdict> verify_solutions(const std::vector<const Task*>& tasks,
                                        const std::function<void(int64_t done)>& progress = {});

  // As verify_each(), for candidates that are still being made: verdicts begin to come with the first of them. `spare`
  // of the workers wait until the last candidate is there. The verifier must outlive the stream. Each stream has as
  // many workers. `limits` hold for all its candidates.
  std::unique_ptr<VerifyStream> stream(VerifyStream::OnVerdict on_verdict, int64_t spare = 0, OwnLimits limits = {});
  // The GPU of that name ("cuda:0"), for somebody else who works on it: what is timed there waits until that has given
  // way. Candidates' correctness is found out beside it. Null where nothing is timed on it. Lives as long as the
  // verifier.
  SharedDevice* shared_device(const std::string& name);

  // Why `task` cannot be used ("" = it can): its reference fails on one of its ordinary cases, or a wrong answer would
  // pass. Blocks. Throws Error (environment) when judge or worker are lost again and again. Thread rule: any thread.
  std::string lint(const Task& task) const;
  // The judge's findings about a task at these sizes. Blocks. Throws as lint(). Thread rule: any thread.
  Finding find_flaws(const Task& task, const std::map<std::string, int64_t>& sizes, TaskFindings* found) const;

  // The trace of a task's reference, a case for each spec; cached. Asks once more when the worker was lost, and
  // throws Error (environment) when it is lost again. Blocks. Thread rule: any thread.
  std::shared_ptr<const Reference> record(const Task& task, const std::vector<CaseSpec>& cases = {{"full"}}) const;
  const VerifyConfig& config() const { return config_; }
  const std::vector<std::string>& sandbox_missing() const { return sandbox_missing_; }
  int64_t workers() const;
  // Null where candidates are interpreted.
  const JudgeSlots* gpus() const { return on_gpus_ ? judges_.get() : nullptr; }

 private:
  Verifier(std::unique_ptr<WorkerPool> pool, std::unique_ptr<JudgeSlots> judges, bool on_gpus, VerifyConfig config,
           VerifySeams seams, std::vector<std::string> missing);
  ExecutionTools tools() const;
  Finding lint_case(const Task& task, const std::vector<CaseSpec>& cases, size_t index, bool other_seed, bool drops,
                    TaskFindings* found) const;

  VerifyConfig config_;
  VerifySeams seams_;
  std::vector<std::string> sandbox_missing_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<JudgeSlots> judges_;
  bool on_gpus_;
  std::unique_ptr<ReferenceCache> references_;
  std::unique_ptr<Stages> stages_;
};

}  // namespace tritonrl
