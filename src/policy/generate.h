// SPDX-License-Identifier: Apache-2.0
// Continuous batching: many prompts, several samples each, through one decoder.
//
// The decoder's slots are rows of one running batch, one token a row a step; nothing is padded. A row that finishes
// leaves at once and the next waiting sample takes its slot. A prompt is computed once for its group, in one of the
// last slots (on a GPU many prompts at once), from which its samples copy. Each draw comes from
// request.rng.at(sample).at(position), so the same seed gives the same rollouts whatever the order, the number of slots
// or the other requests (on the CPU bit for bit; on a GPU up to the batch dependence of its matrix library).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "policy/sampling.h"

namespace tritonrl {

struct Generated {
  std::vector<int32_t> tokens;   // The answer, stop token included when there was one.
  std::vector<float> log_probs;  // One a token; see SampledToken.
  bool finished = false;         // Ended with a stop token (else it was cut off).
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  // REQUIRES: not empty, shorter than the decoder's capacity.
  int64_t samples = 1;
  Rng rng;
  std::map<int64_t, Generated> known = {};  // Samples that were drawn before, and are not drawn again.
};

struct StopTokens {
  std::vector<int64_t> ids;  // End the answer.
  int64_t vocab_limit = 0;   // Ids from here on are padding and are never drawn; 0 = the model's vocabulary.
};

// Called after each step, when nothing is under way on the device, with (samples finished, samples in all, tokens drawn
// so far); return false to stop early: unfinished samples are then returned as they are.
using GenerateProgress = std::function<bool(int64_t done, int64_t total, int64_t tokens)>;
// Called as soon as a sample is complete, in the order in which they become so (known ones first), on generate's
// thread, which it keeps from its work.
using OnGenerated = std::function<void(size_t request, int64_t sample, const Generated& generated)>;

// Result [request][sample]. The decoder's slots are overwritten. REQUIRES: at least 2 slots.
std::vector<std::vector<Generated>> generate(Decoder& decoder, std::span<const GenerateRequest> requests,
                                             const SamplingConfig& sampling, const StopTokens& stop,
                                             const GenerateProgress& progress = {},
                                             const OnGenerated& on_generated = {});

}  // namespace tritonrl
