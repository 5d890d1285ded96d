// SPDX-License-Identifier: Apache-2.0
// What a step of several turns adds to its line of steps.jsonl, and an evaluation to its log. With one turn: nothing.
#pragma once

#include <string>

#include "base/files/json.h"
#include "eval/metrics.h"
#include "rollout/roll_out.h"

namespace tritonrl {

// Members to be put into the step's line.
//   correct_rate, pass_at_1      of first answers (pass@1), in the place of that of all answers: it stays comparable
//   turn/T/answers               with a reward, at turn T; turn/T/correct_rate, turn/T/reward and turn/T/return are
//                                their means
//   turns/correct_first, _last, _best
//                                shares of the trajectories without a harness fault whose first answer, last answer or
//                                any answer is correct
//   turns/mended, turns/broken   shares of the wrong answers that were followed by a right one, and the reverse
//   turns/too_long               conversations that ended because the next prompt would have been too long
// Shares of nothing are left out.
Json turn_metrics(const Rollouts& rollouts, int64_t turns);

// ", 5 of 12 within 3 turns", or "" where there was one turn.
std::string within_turns(const LevelMetrics& metrics);

}  // namespace tritonrl
