// SPDX-License-Identifier: Apache-2.0
// Extract: finds the candidate's code in a policy's answer.
//
// The answer is Markdown as language models write it. The code is the last *complete* fenced block (``` or ~~~); a
// block marked as Python wins over blocks in other languages, wherever they stand. An unfinished block (the answer ran
// into its length limit) is never taken. Bytes that are not UTF-8 pass through; the syntax stage judges them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verify/finding.h"

namespace tritonrl {

constexpr int64_t kMaxCandidateBytes = 1 << 20;

struct Extraction {
  bool found = false;
  std::string code;        // Without its fences.
  Rule why = Rule::kPass;  // Why there is no code; kPass when found.
};

// Never throws for anything `answer` holds. Code larger than kMaxCandidateBytes, or empty, counts as not found.
Extraction extract_code(std::string_view answer);

// The same limits for a candidate that is a plain Python file.
Extraction accept_code(std::string_view file);

}  // namespace tritonrl
