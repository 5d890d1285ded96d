// SPDX-License-Identifier: Apache-2.0
#include "rollout/sample.h"

#include <algorithm>

#include "base/text.h"

namespace tritonrl {
namespace {

Json value_of(const std::optional<Reward>& reward) { return reward ? Json(reward->value) : Json(); }

}  // namespace

std::vector<TaskResult> results_by_task(std::span<const Group> groups) {
  std::vector<TaskResult> results;
  for (const Group& group : groups) {
    TaskResult result{group.task.id, group.task.level, 0, 0};
    for (const Sample& sample : group.samples) {
      if (sample.rollout.turn > 1 || !sample.reward) continue;
      ++result.samples;
      result.correct += sample.verdict.correct();
    }
    results.push_back(result);
  }
  return results;
}

void write_verdict(RunDir& run, const Verdict& verdict, const std::string& phase, std::optional<double> reward) {
  Json line = to_json(verdict);
  line["phase"] = phase;
  line["reward"] = reward ? Json(*reward) : Json();
  run.verdicts().write(line);
}

void write_verdicts(RunDir& run, std::span<const Group> groups, const std::string& phase) {
  for (const Group& group : groups) {
    for (const Sample& sample : group.samples) {
      write_verdict(run, sample.verdict, phase, sample.reward ? std::optional(sample.reward->value) : std::nullopt);
    }
  }
}

std::string step_name(int64_t step) {
  std::string digits = cat(step);
  return "step_" + std::string(6 - std::min<size_t>(6, digits.size()), '0') + digits;
}

std::filesystem::path samples_file(const RunDir& run, int64_t step) {
  return run / cat("rollouts/", step_name(step), ".jsonl");
}

void save_samples(const std::filesystem::path& path, std::span<const Group> groups, int64_t turns) {
  std::string lines;
  for (const Group& group : groups) {
    for (size_t s = 0; s < group.samples.size(); ++s) {
      const Sample& sample = group.samples[s];
      const Rollout& rollout = sample.rollout;
      Json line = {{"task_id", group.task.id},
                   {"sample_index", s},
                   {"text", rollout.text},
                   {"tokens", rollout.tokens},
                   {"log_probs", rollout.log_probs},
                   {"finished", rollout.finished},
                   {"reward", value_of(sample.reward)},
                   {"outcome", to_string(sample.verdict.outcome)}};
      if (turns > 1) {
        line.update({{"trajectory", rollout.trajectory},
                     {"turn", rollout.turn},
                     {"return", value_of(sample.to_go)},
                     {"feedback", rollout.feedback}});
      }
      lines += json_line(line) + "\n";
    }
  }
  write_file(path, lines);
}

}  // namespace tritonrl
