// SPDX-License-Identifier: Apache-2.0
// Feedback: what a verdict says to the policy that wrote the candidate, as the text of its next turn.
//
// A pure function of the verdict: the stage, the error with the lines it names, how far the output is off and where, or
// the time against the reference. Two things are kept back.
//   - What the judge alone knows. A verdict's message for people gives an expected value of a wrong output; here there
//     are counts, places, shapes, dtypes and the error in units of what is allowed (two digits, and no more than "over
//     1000 times", so that an answer of zeros does not read the expected value off it). Numbers with a fraction that
//     are left in such a message are masked. Seeds are in no verdict. What a candidate's process says comes from a
//     sandbox that knows neither the expected values nor the seeds of the inputs, but while it runs it does see inputs:
//     what it writes to its standard error then is left out.
//   - How tampering was found out.
// Nothing in it changes from run to run but what the clock measured: no seconds of a stage that ran too long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verify/verdict.h"

namespace tritonrl {

// At most about max_chars characters (see clip_middle). REQUIRES: !verdict.is_harness_fault(), which nobody is told of.
// Thread rule: any thread.
std::string feedback_text(const Verdict& verdict, int64_t max_chars);

// The head and the tail of a text that has more than `limit` bytes, with a mark between them: an error says first where
// it was and last what it is. Cuts between characters. REQUIRES: limit >= 16.
std::string clip_middle(const std::string& text, int64_t limit);

}  // namespace tritonrl
