// SPDX-License-Identifier: Apache-2.0
// Groups of samples: several answers to each task, drawn and verified.
#pragma once

#include <span>
#include <vector>

#include "rollout/overlap.h"
#include "rollout/sample.h"

namespace tritonrl {

// Samples with their verdicts, and how long they took.
struct Rollouts {
  std::vector<Group> groups;
  PhaseTimes times;
  int64_t tokens = 0;     // Of all answers.
  int64_t too_long = 0;   // Conversations that ended because the next prompt would have been too long.
  int64_t staleness = 0;  // Updates between the policy that drew them and the one they train.

  // Those of another round of the same step. Staleness is the last one's.
  void add(Rollouts more);
};

// One answer a sample, in the order of the tasks. Throws Interrupted when asked to stop.
Rollouts roll_out_and_verify(const PolicySnapshot& policy, Verifier& verifier, std::span<const Task> tasks,
                             int64_t samples, const SamplingConfig& sampling, const Rng& rng, const Collecting& how);

}  // namespace tritonrl
