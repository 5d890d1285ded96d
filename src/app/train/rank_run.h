// SPDX-License-Identifier: Apache-2.0
// A run by several ranks (train/ranks.h): who has which GPU, which processors and which directory, and who starts them.
//
// The run directory is rank 0's. Each other rank has one of its own below it, RUN/ranks/N, on whatever disk it finds
// that path: no disk needs to be shared. Nothing there outlives the process but answers that were being collected; what
// is done and what came of it is rank 0's word (share_run, TrainedPolicy::load).
#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "base/files/run_dir.h"
#include "train/ranks.h"

namespace tritonrl {

// From here on this process sees the GPU of its place alone, and speaks as that rank. Call before any GPU is used.
// Nothing for a single rank. Throws Error (environment) where this machine has fewer GPUs than ranks that train on
// them.
void take_place(const Ranks::Place& place, const Config& config);

// Throws Error (usage) that names the rank where config, program or model are not the same on all.
RunDir open_run(const Config& config, bool overwrite, Ranks& ranks);
// The processors of this machine, divided among its ranks: for tensors, and where verify.workers is 0.
void share_processors(const Ranks& ranks, VerifyConfig* verify);
// What is recorded as done in rank 0's run, with the files that say what came of it but for checkpoints, to all others.
void share_run(RunDir& run, Ranks& ranks);

// Starts `count` processes of this program on this machine as ranks, with these arguments, and waits for them. Where
// one fails the others are ended. Returns the exit code of the one that failed first, or 0.
int start_ranks(int64_t count, const std::vector<std::string>& arguments);

}  // namespace tritonrl
