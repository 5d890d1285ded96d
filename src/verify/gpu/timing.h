// SPDX-License-Identifier: Apache-2.0
// Timing: device time of one run of a tape against another's, in one context, interleaved.
//
// A reading queues, behind a kernel that holds the stream: flush, event, reference, event, flush, event, candidate,
// event; then lets go. The host has queued everything before the device starts, so no gap of the host's is measured.
// The order of the two alternates from reading to reading. Seconds are those of CUDA events; the sum of all of them
// must fit into the wall clock of the loop, or somebody has tampered with the events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tritonrl {

struct TimedPair {
  double reference_s = 0, candidate_s = 0;
};

struct TimingRequest {
  std::function<void()> reference, candidate;  // Queue one run each.
  std::function<void()> restore;               // Puts changed inputs back, outside of what is timed; may be empty.
  int64_t warm_ups = 3, readings = 20;
  bool cold = true;  // Flush the L2 cache before each of the two.
};

// Throws ReplayFailure. CUDA only.
std::vector<TimedPair> time_pairs(const TimingRequest& request);

// Device seconds between the two marks of every step, for the share of Triton in a tape: fn(mark) runs the tape and
// calls mark(step, before).
std::vector<double> time_steps(size_t steps, const std::function<void(std::function<void(size_t, bool)>)>& fn);

// How far from 1 the measured ratio of a computation to itself gets, for some durations: a speedup within the band of
// its duration is none.
struct NoiseBand {
  double seconds = 0;  // Of one run.
  double ratio = 0;    // |ratio - 1|, the largest of several repeats in different places of the memory.
};
std::vector<NoiseBand> measure_noise();

// What this GPU reaches: bytes per second of a large copy (read + write).
double peak_bandwidth();

}  // namespace tritonrl
