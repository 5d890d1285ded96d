// SPDX-License-Identifier: Apache-2.0
// Oracle: what a task's reference answers on one set of inputs, and a cache of such answers.
//
// The reference runs in a sandboxed child of its own, which never sees a byte of any candidate. Its answer holds the
// expected outputs; it stays in this process, and only inputs and parameters go on to children that run candidates.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "data/task.h"
#include "verify/blob.h"
#include "verify/case_source.h"
#include "verify/zygote.h"

namespace tritonrl {

struct OracleParameter {
  std::string name;
  std::string init_hash;  // Of the bytes as __init__ left them; `tensor` holds them perturbed.
  BlobView tensor;
};

struct OracleInput {
  bool is_tensor = false;
  BlobView tensor;
  Json value;  // When it is not a tensor.
};

struct OracleAnswer {
  Blob blob;  // Owns the bytes all views point to.
  std::vector<OracleParameter> parameters;
  std::vector<OracleInput> inputs;
  std::set<size_t> mutated;       // Inputs that the reference changes.
  Nest<BlobView> outputs, truth;  // In the task's own dtypes; in float64.
  // Where controls were asked for: a second run, and runs with one operation left out.
  Nest<BlobView> again;
  std::vector<std::pair<std::string, Nest<BlobView>>> controls;
  Json init_inputs;
  std::string failure;         // Why the task is of no use; "" when it is.
  bool out_of_memory = false;  // ... for memory ran out, or too much of it was asked for.
  bool lost = false;           // Our fault, not the task's; asking again may help.
  // A deadline, a signal, memory: perhaps only the machine was busy. Asked once more, never kept.
  bool passing = false;
};

// Parses the blob of an oracle job; `failure` is set when it does not hold what it must.
OracleAnswer parse_oracle(JobAnswer answer);

class OracleCache {
 public:
  // Keeps at most max_bytes of answers (and always the one in use).
  OracleCache(WorkerPool& pool, double deadline_s, int64_t memory_bytes, int64_t max_bytes = int64_t{1} << 30)
      : pool_(pool), deadline_s_(deadline_s), memory_bytes_(memory_bytes), max_bytes_(max_bytes) {}

  // Blocks. One question asked by many at once is answered once. Thread rule: any thread.
  std::shared_ptr<const OracleAnswer> ask(const Task& task, const CaseSpec& spec, int64_t weight_seed,
                                          int64_t input_seed);

 private:
  using Future = std::shared_future<std::shared_ptr<const OracleAnswer>>;
  WorkerPool& pool_;
  double deadline_s_;
  int64_t memory_bytes_, max_bytes_;
  std::mutex mutex_;
  std::map<std::string, Future> answers_;
  std::list<std::pair<std::string, int64_t>> order_;  // Finished answers, oldest first, with their sizes.
  int64_t bytes_ = 0;
};

}  // namespace tritonrl
