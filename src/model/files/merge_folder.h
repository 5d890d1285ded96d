// SPDX-License-Identifier: Apache-2.0
// Base model + LoRA adapter -> a plain model folder that any program loads.
#pragma once

#include <cstdint>
#include <string>

namespace tritonrl {

struct MergeReport {
  int64_t tensors = 0;  // Written.
  int64_t merged = 0;   // Of them with an update.
};

// Reads a Hugging Face folder and an adapter in PEFT's layout; writes W + (alpha / r) B A in the base's own dtype
// (summed in float, rounded once) and every other tensor and file of the base as it is. One tensor is in memory at a
// time. Throws Error (usage): an adapter for another model, an `out` that holds a model already; (environment): no
// space.
MergeReport merge_adapter(const std::string& base, const std::string& adapter, const std::string& out);

}  // namespace tritonrl
