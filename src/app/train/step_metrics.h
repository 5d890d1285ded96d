// SPDX-License-Identifier: Apache-2.0
// What one RL step's line in steps.jsonl (and TensorBoard) says. docs/runs.md lists the names.
#pragma once

#include "base/files/json.h"
#include "rollout/roll_out.h"
#include "train/credit/credit.h"
#include "train/trainer.h"

namespace tritonrl {

struct StepFacts {
  int64_t step = 0;
  const Rollouts& rollouts;  // Of all rounds.
  const AdvantageConfig& advantage;
  int64_t rounds = 1;
  int64_t kept = 0;  // Examples trained on.
  const TrainSummary& update;
  double grad_norm = 0;           // Of the last update, before clipping.
  int64_t device_peak_bytes = 0;  // 0 = on the CPU.
  double seconds = 0;
};

Json step_metrics(const StepFacts& facts);
// Adds what the policy loss tells, where there was one.
void add_policy_metrics(const PolicyLossMetrics& metrics, Json* line);

}  // namespace tritonrl
