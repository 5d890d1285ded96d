// SPDX-License-Identifier: Apache-2.0
// Sampling and verifying: one after the other, or each answer verified as soon as it is complete, while the others are
// still being sampled.
//
// Answers, verdicts and their order are the same either way, since a verdict depends on the candidate alone (with
// verify.seed set; times from a GPU are never the same twice). Overlap is for a policy on a GPU: on the CPU both want
// the same cores, and sampling waits at each layer for its slowest thread. Where sampler and verifier share a GPU,
// sampling stops between two tokens while a kernel is being timed (base/process/shared_device.h): whatever is measured
// is measured on a quiet GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "rollout/rollout_journal.h"
#include "verify/verifier.h"

namespace tritonrl {

// How answers are collected.
struct Collecting {
  std::string what;                   // Names progress bars and what is logged.
  bool stream = false;                // Verify answers while others are sampled.
  RolloutJournal* journal = nullptr;  // Keeps what comes; what it holds is neither drawn nor verified again.
  OwnLimits limits = {};              // How long candidates may compute.
  // Called once, on the calling thread, when nothing more will be drawn.
  std::function<void()> on_sampled = {};
  // Asked between two tokens: is this to end with Interrupted, for another reason than base/process/interrupt.h's?
  std::function<bool()> stopped = {};
};

// Wall clock, in seconds, and what was done in it (not counting what a journal held); sums over calls.
struct PhaseTimes {
  double rollout = 0;       // While answers were sampled.
  double verify = 0;        // From the first candidate the verifier got to the last verdict.
  double verify_alone = 0;  // Of that, with nothing being sampled here: behind the last answer.
  double gave_way = 0;      // Of rollout, while sampling waited for the timing of kernels.
  int64_t drawn = 0;        // Tokens.
  int64_t judged = 0;       // Candidates.
  double wait_rollout = 0;  // How long a step waited for answers (rollout/rollout_source.h),
  double wait_verify = 0;   // ... and then for verdicts.
  double idle = 0;          // Of both, while nothing was sampled.

  void add(const PhaseTimes& other);
};

// "auto" = where the policy is on a GPU; "true", "false".
bool should_stream(Switch stream, const Policy& policy);

// Draws an answer for each candidate, calling `on_answer` once for each, on its own thread, with the candidate's
// position. Stops early where `progress` says so.
using DrawAnswers = std::function<void(const GenerateProgress& progress,
                                       const std::function<void(size_t candidate, const Rollout& answer)>& on_answer)>;

struct Collected {
  std::vector<Verdict> verdicts;  // In the order of the candidates.
  PhaseTimes times;
  int64_t tokens = 0;  // Of all answers.
};

// Verdicts on all candidates, which lack only their texts. `turn` = under which the journal knows them; what that holds
// of answers, `draw` is to take from there. `device` = the policy's, where kernels are timed on it; or null. Throws
// Interrupted when asked to stop.
Collected sample_and_verify(Verifier& verifier, std::vector<Candidate> candidates, const DrawAnswers& draw,
                            const Collecting& how, int64_t turn, SharedDevice* device);

}  // namespace tritonrl
