// SPDX-License-Identifier: Apache-2.0
// Peer: answers beside something else that makes references faster, such as torch.compile (bench/torch_compile.py).
//
// The peer was timed against PyTorch eager in a process of its own, a candidate against the same reference in the
// verifier. Only ratios travel: candidate over peer is the candidate's speedup over eager, divided by the peer's, so
// that what two processes measure differently (clocks, placement) mostly cancels. Where both intervals together hold 1,
// neither is faster: the ratio counts as 1, as a speedup within its noise does.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "eval/metrics.h"

namespace tritonrl {

struct PeerTime {
  double ratio = 1;          // Eager time / the peer's time.
  double low = 1, high = 1;  // Its 95 % interval.
  std::string source;        // SHA-256 of the task's source.
};

struct Peer {
  std::string name;                       // "torch.compile (default)".
  std::map<std::string, PeerTime> times;  // By task id; tasks that the peer could not do are not here.
};

// What bench/torch_compile.py wrote. Throws Error (usage) for a file that is something else.
Peer load_peer(const std::filesystem::path& path);

// Throws Error (usage) where the peer was timed on another source of a task with that id.
void check_same_sources(const Peer& peer, const std::map<std::string, std::string>& source_by_task);

// How many times as fast as the peer a candidate is that has a time; 1 where the intervals say that neither is faster.
// An interval that a verdict lacks is the noise band of its timing. REQUIRES: verdict.speedup.
double speedup_over_peer(const Verdict& verdict, const PeerTime& peer);

// Fills in row->peer and the `peer` of each level. `records` are those that the row was made of.
void compare_with_peer(const Peer& peer, const std::vector<EvalRecord>& records, ResultsRow* row);

}  // namespace tritonrl
