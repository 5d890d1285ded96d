// SPDX-License-Identifier: Apache-2.0
// What an evaluation keeps of an answer. Free of torch, for room eval.
#pragma once

#include <cstdint>
#include <string>

#include "verify/verdict.h"

namespace tritonrl {

// One sampled answer of a policy and what became of it.
struct EvalRecord {
  std::string task_id;
  int level = 1;
  int64_t sample_index = 0;  // 0 ... samples per task - 1.
  int64_t turn = 1;          // Answers of a conversation have the same sample_index and follow each other.
  Verdict verdict;
  std::string text;    // The answer as decoded.
  int64_t tokens = 0;  // Generated tokens, the stop token included.
  // Why generation ended: "stop" (a stop token), "length" (cut at the token limit), "" = it and `tokens` are not known.
  std::string finished = "stop";
  double logprob = 0;  // Sum of the token log-probabilities under the sampled distribution, in nats.
};

}  // namespace tritonrl
