// SPDX-License-Identifier: Apache-2.0
// `tritonrl data synth --count N --out FILE` (or --solved N): a stream of graph tasks into a file, with or without
// verification.
//
// The file appears under its own name only when it is whole; until then it is FILE.partial. A run that was stopped
// continues after the last whole line and ends with the same bytes as one that was not. With verification,
// FILE.verdicts.jsonl has one line for every task that was made, kept or not. Memory does not grow with the number of
// tasks beyond the hash of each graph.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "data/synth/graph_synth.h"
#include "verify/stages.h"

namespace tritonrl {

struct SynthRunOptions {
  int64_t count = 0;   // Tasks to make; verification keeps fewer.
  int64_t solved = 0;  // Instead: make tasks until this many have a solution that passed (a few more may). Verifies.
  std::filesystem::path out;
  bool verify = false;
  Exclusion exclusion = {};
};

// Prints what came of it to `say`. Throws Error: a partial file of another configuration (usage), a full disk or an
// incomplete sandbox (environment); Interrupted when asked to stop.
void run_synth(const graphs::SynthConfig& config, const VerifyConfig& verify, const SynthRunOptions& options,
               std::ostream& say);

// Makes a folder for output, and those above it. Throws Error (environment) where that cannot be.
void make_output_folder(const std::filesystem::path& folder);

}  // namespace tritonrl
