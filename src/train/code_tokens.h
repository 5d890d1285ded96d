// SPDX-License-Identifier: Apache-2.0
// Which tokens of an answer are its code, and what its length costs: what credit needs to know beside the reward.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "model/tokenizer/tokenizer.h"
#include "policy/rollout.h"

namespace tritonrl {

// Tokens [first, second) of the rollout hold the code that is verified (verify/extract.h), fences left out; a token
// that is partly code is code. Empty without code. Told by tokens, so that no character of the plan earns code's
// credit.
std::optional<std::pair<int64_t, int64_t>> code_tokens(const Tokenizer& tokenizer, const Rollout& rollout);

// DAPO's soft overlong punishment (Yu et al., 2025, equation 13): 0 up to longest - buffer tokens, then linearly down
// to -1 at `longest`; -1 for an answer that was cut off.
double overlong_penalty(int64_t tokens, bool finished, int64_t longest, int64_t buffer);

}  // namespace tritonrl
