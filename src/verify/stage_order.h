// SPDX-License-Identifier: Apache-2.0
// StageOrder: the seam that says which stage a candidate goes through next.
#pragma once

#include <optional>
#include <vector>

#include "verify/verdict.h"

namespace tritonrl {

class StageOrder {
 public:
  virtual ~StageOrder() = default;
  // The stage after those in `done` (in the order they ran), or nothing when the candidate is finished.
  // Thread rule: any thread.
  virtual std::optional<Stage> next(const std::vector<StageResult>& done) const = 0;
};

// Every stage in order, whatever became of those before: without code, or without a trace, nothing is left to run.
// The candidate's outcome is that of the first stage that did not pass all the same.
class EveryStage : public StageOrder {
 public:
  std::optional<Stage> next(const std::vector<StageResult>& done) const override {
    if (done.empty()) return Stage::kExtract;
    const StageResult& last = done.back();
    bool needed = last.stage == Stage::kExtract || last.stage == Stage::kCompile;
    bool ours = last.outcome() == Outcome::kHarnessFault;
    if (last.stage == Stage::kTime || ours || (needed && !last.finding.passed())) return std::nullopt;
    return static_cast<Stage>(static_cast<int>(last.stage) + 1);
  }
};

// From cheap to dear, stopping at the first stage that does not pass: extract and syntax (microseconds), compile (tens
// of milliseconds, and Triton's compiler), tiny_run, full_run, time. What a verifier does that is given no order. The
// verdict is that of EveryStage; what is saved is the work after the first failure (docs/results/staged_evaluation.md).
class Staged : public StageOrder {
 public:
  std::optional<Stage> next(const std::vector<StageResult>& done) const override {
    if (done.empty()) return Stage::kExtract;
    if (!done.back().finding.passed() || done.back().stage == Stage::kTime) return std::nullopt;
    return static_cast<Stage>(static_cast<int>(done.back().stage) + 1);
  }
};

}  // namespace tritonrl
