// SPDX-License-Identifier: Apache-2.0
#include "train/code_tokens.h"

#include <algorithm>

#include "verify/extract.h"

namespace tritonrl {

std::optional<std::pair<int64_t, int64_t>> code_tokens(const Tokenizer& tokenizer, const Rollout& rollout) {
  Extraction found = extract_code(rollout.text);
  size_t begin = found.found ? rollout.text.rfind(found.code) : std::string::npos;
  if (begin == std::string::npos) return std::nullopt;
  size_t end = begin + found.code.size(), at = 0;
  StreamDecoder decoder(tokenizer, /*skip_special=*/true);
  std::pair<int64_t, int64_t> tokens = {-1, -1};
  for (size_t t = 0; t < rollout.tokens.size(); ++t) {
    at += decoder.push(rollout.tokens[t]).size();  // Where this token's text ends, but for an unfinished character.
    if (tokens.first < 0 && at > begin) tokens.first = static_cast<int64_t>(t);
    if (at >= end) {
      tokens.second = static_cast<int64_t>(t) + 1;
      break;
    }
  }
  if (tokens.first < 0) return std::nullopt;
  if (tokens.second < 0) tokens.second = static_cast<int64_t>(rollout.tokens.size());
  return tokens;
}

double overlong_penalty(int64_t tokens, bool finished, int64_t longest, int64_t buffer) {
  if (!finished) return -1;
  double over = static_cast<double>(tokens - (longest - buffer)) / static_cast<double>(buffer);
  return -std::clamp(over, 0.0, 1.0);
}

}  // namespace tritonrl
