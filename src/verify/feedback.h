// SPDX-License-Identifier: Apache-2.0
// Feedback: what a verdict says to the policy that wrote the candidate, as the text of its next turn.
//
// A pure function of a verdict's public part: the stage, the error with the lines it names, how far the output is off
// and where, or the time against the reference. Secrets never come here: a PublicVerdict has no room for the values,
// standard errors and details of a SecretFinding (finding.h). How tampering was found out is not said either.
// Nothing in it changes from run to run but what the clock measured: no seconds of a stage that ran too long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verify/verdict.h"

namespace tritonrl {

// What the policy may know of a verdict.
struct PublicVerdict {
  Stage stopped_at = Stage::kExtract;
  PublicFinding finding;  // kPass: it is correct.
  std::optional<TimingResult> timing;
  std::optional<double> triton_share;
  std::string code;  // Its own.
};
PublicVerdict public_part(const Verdict& verdict);

// At most about max_chars characters (see clip_middle). REQUIRES: no harness fault, which nobody is told of.
// Thread rule: any thread.
std::string feedback_text(const PublicVerdict& verdict, int64_t max_chars);

// The head and the tail of a text that has more than `limit` bytes, with a mark between them: an error says first where
// it was and last what it is. Cuts between characters. REQUIRES: limit >= 16.
std::string clip_middle(const std::string& text, int64_t limit);

}  // namespace tritonrl
