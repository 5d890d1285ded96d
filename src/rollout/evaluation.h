// SPDX-License-Identifier: Apache-2.0
// Evaluation of a policy on a task set, every answer through the full verifier: its settings, and what is kept of the
// answers. Rates and intervals are room eval's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rollout/record.h"
#include "rollout/roll_out.h"

namespace tritonrl {

enum class EvalVerifier { kAsTrained, kFull };
constexpr auto enum_names(EvalVerifier) { return std::array{"as_trained", "full"}; }

struct EvalConfig {
  int64_t samples = 2;  // Answers per task.
  int64_t turns = 1;
  int64_t every = 0;
  int64_t seed = 5;
  SamplingConfig sampling;
  std::string tasks;  // Task set to evaluate on; "" = the held-out split.
  std::string ids;    // File with the ids to take of it; "" = all.
  EvalVerifier verifier = EvalVerifier::kAsTrained;
  Switch stream = Switch::kAuto;

  template <class V>
  void for_each_field(V& v) {
    v("samples", samples, "answers per held-out task");
    v("turns", turns,
      "answers of a conversation at most; each but the first follows the verdict on the one before. A correct answer "
      "ends "
      "it. Every rate but that of `within` is of first answers");
    v("every", every, "evaluate also behind every so many RL steps (the last comes anyway); 0 = do not");
    v("seed", seed, "of the sampling");
    v("sampling", sampling, "");
    v("tasks", tasks, "task set (JSON lines) in place of the held-out split");
    v("verifier", verifier, "full = with every extension on, whatever training uses");
    v("stream", stream, "verify answers while others are sampled; auto = where the policy is on a GPU");
    v("ids", ids, "file with ids, one a line: evaluate on these of eval.tasks only");
  }
  void validate() const {
    if (!ids.empty() && tasks.empty()) throw usage_error("ids needs tasks");
    if (samples < 1 || turns < 1) throw usage_error("samples and turns must be at least 1");
    if (every < 0) throw usage_error("every must not be negative");
  }
};

// One record an answer, in the order of tasks, turns and samples.
std::vector<EvalRecord> records_of(const Rollouts& rollouts);

// Records as JSON lines, so that a run can be resumed and looked into.
void save_records(const std::filesystem::path& path, const std::vector<EvalRecord>& records);
std::vector<EvalRecord> load_records(const std::filesystem::path& path);
// Records, or verdicts as `tritonrl verify --batch` writes them, a line each. Of those, text, length and tokens are not
// known; the samples of a task count in the order of the file. Throws Error (usage) with file:line.
std::vector<EvalRecord> load_answers(const std::filesystem::path& path);

}  // namespace tritonrl
