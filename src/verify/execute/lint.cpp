// SPDX-License-Identifier: Apache-2.0
// What the judge finds out about a task, no candidate given.
#include "verify/execute/execution.h"

namespace tritonrl {

Finding Execution::lint(double deadline_s, TaskFindings* found, size_t index, bool other_seed, bool drops) {
  Finding ready = ask_for_reference();
  if (!ready.passed()) return ready;
  const CaseSpec& spec = cases_[index];
  JudgeAnswer answer;
  {
    JudgeLease judge = tools_.judges->acquire(reference_->key, &target_);
    answer = judge.give_task(reference_->key, *reference_->file.bytes);
    JudgeTiming what;
    what.task = reference_->key;
    what.name = spec.name;
    what.weight_seed = weights_.init;
    what.noise_seed = weights_.noise;
    what.reference_seed = input_seed(spec, other_seed ? 1 : 0);
    what.candidate_seed = input_seed(spec, other_seed ? 0 : 1);
    what.deadline_s = deadline_s;
    if (answer.finding.passed()) answer = judge.lint(what, drops);
  }
  Finding ended = end(answer);
  found->out_of_memory =
      answer.body.is_object() && answer.body.value("reference_failed", "") == to_string(Outcome::kOutOfMemory);
  if (!ended.passed()) return ended;
  found->flags = answer.body.at("flags").get<std::vector<std::pair<std::string, std::string>>>();
  found->drops_tried = answer.body.at("drops_tried").get<int64_t>();
  found->drops_impossible = answer.body.at("drops_impossible").get<int64_t>();
  return {};
}

}  // namespace tritonrl
