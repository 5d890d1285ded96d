// SPDX-License-Identifier: Apache-2.0
// Reference: the trace of a task's own module (its __init__, its get_inputs(), its forward()), and a cache of such.
//
// Recorded without a GPU in a sandboxed child that never sees a candidate. The judge replays it to draw weights and
// inputs on the GPU, to know the answer, and to time it; candidates are recorded against its shapes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/once_cache.h"
#include "data/tasks/task.h"
#include "verify/execute/case_source.h"
#include "verify/sandbox/fork_server.h"
#include "verify/trace/target_gpu.h"
#include "verify/trace/trace.h"

namespace tritonrl {

struct Reference {
  std::string key;   // Content hash of the task's source, of the cases that are recorded and of the GPU.
  TargetGpu target;  // That it was recorded for.
  TraceFile file;    // A case for each CaseSpec with a trace of its own, but for those below.
  std::map<std::string, std::string> not_possible;  // Additional cases that it cannot do, and why.
  std::string failure;                              // Why the task cannot be judged; "" when it can.
  bool lost = false;                                // Our fault, not the task's; asking again may help.
  // A deadline, a signal: perhaps only the machine was busy. Asked once more, never kept.
  bool passing = false;
};

class ReferenceCache {
 public:
  ReferenceCache(WorkerPool& pool, double deadline_s, int64_t memory_bytes)
      : pool_(pool),
        deadline_s_(deadline_s),
        memory_bytes_(memory_bytes),
        answers_(kMostAnswers, [](const auto& answer) { return answer->lost || answer->passing ? -1 : 1; }) {}

  // Blocks. One question asked by many at once is answered once. Thread rule: any thread.
  std::shared_ptr<const Reference> ask(const Task& task, const std::vector<CaseSpec>& cases, int64_t weight_seed,
                                       const TargetGpu& target = TargetGpu());

  // That replaying the reference of `key` ended a process of ours. Once may be chance; after that it is the reason why
  // the task cannot be judged, and blamed() says it ("" until then). Thread rule: any thread.
  void blame(const std::string& key, const std::string& why);
  std::string blamed(const std::string& key) const;

 private:
  static constexpr int64_t kMostAnswers = 4096;  // A trace of a reference is a few kilobytes.
  std::shared_ptr<const Reference> record(const std::string& key, const Task& task, const std::vector<CaseSpec>& cases,
                                          int64_t weight_seed, const TargetGpu& target);
  WorkerPool& pool_;
  double deadline_s_;
  int64_t memory_bytes_;
  OnceCache<std::string, std::shared_ptr<const Reference>> answers_;
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<int, std::string>> blamed_;  // How often, and why last.
};

// A case as a `record` job of a reference asks for it.
Json case_question(const CaseSpec& spec);
// The first floating dtype among a case's "inputs"; "other" when there is none.
std::string floating_dtype(const Json& inputs);
// What a candidate's `record` job needs to know of a reference's case.
Json record_case(const CaseTrace& reference, const CaseSpec& spec);

}  // namespace tritonrl
