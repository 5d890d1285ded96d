// SPDX-License-Identifier: Apache-2.0
// Supervised fine-tuning as a phase of a run, in parts, each with its checkpoint, so that a run that was stopped
// continues within it (checkpoint.every_updates).
#pragma once

#include "app/train/trained_policy.h"

namespace tritonrl {

// The phase "sft": fine-tunes on the solutions of `tasks`, or on those of the stream (data.train.stream; the phase
// "data" says which of its tasks are wrong), from a fresh adapter, or continues where it was stopped; nothing where it
// is done. Throws Interrupted, behind a checkpoint, when asked to stop.
void fine_tune(const Config& config, RunDir& run, Checkpoints& checkpoints, TrainedPolicy& policy,
               const std::vector<Task>& tasks, const Rng& rng);

Json to_json(const TrainSummary& summary);

}  // namespace tritonrl
