// SPDX-License-Identifier: Apache-2.0
// Sampling and verifying: one after the other, or each answer verified as soon as it is complete, while the others are
// still being sampled.
//
// Answers, verdicts and their order are the same either way, since a verdict depends on the candidate alone (with
// verify.seed set; times from a GPU are never the same twice). Overlap is for a policy on a GPU: on the CPU both want
// the same cores, and sampling waits at each layer for its slowest thread. Where sampler and verifier share a GPU,
// sampling stops between two tokens while a kernel is being timed (base/shared_device.h): whatever is measured is
// measured on a quiet GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "verify/verifier.h"

namespace tritonrl {

// Wall clock, in seconds; sums over calls.
struct PhaseTimes {
  double rollout = 0;       // While answers were sampled.
  double verify = 0;        // From the first candidate the verifier got to the last verdict.
  double verify_alone = 0;  // Of that, with nothing being sampled: behind the last answer.
  double gave_way = 0;      // Of rollout, while sampling waited for the timing of kernels.

  void add(const PhaseTimes& other);
};

// "auto" = where the policy is on a GPU; "true", "false".
bool should_stream(const std::string& stream, const Policy& policy);

// Draws an answer for each candidate, calling `on_answer` once for each, on its own thread, with the candidate's
// position and the answer's text. Stops early where `progress` says so.
using DrawAnswers = std::function<void(
    const GenerateProgress& progress, const std::function<void(size_t candidate, const std::string& text)>& on_answer)>;

// Verdicts on all candidates, which lack only their texts, in their order. Progress bars are named after `what`.
// `device` = the policy's. Adds to *times and to *tokens, those that were drawn. Throws Interrupted when asked to stop.
std::vector<Verdict> sample_and_verify(Verifier& verifier, std::vector<Candidate> candidates, const DrawAnswers& draw,
                                       const std::string& what, bool stream, const std::string& device,
                                       PhaseTimes* times, int64_t* tokens);

}  // namespace tritonrl
