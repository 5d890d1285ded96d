// SPDX-License-Identifier: Apache-2.0
// Timing: device time of one run of a computation against another's, in one context, interleaved.
//
// A reading queues, behind a kernel that holds the stream, k times: flush, event, one side, event, flush, event, the
// other side, event; then a probe of the SM clock; then lets go. The host has queued everything before the device
// starts, so no gap of the host's is measured, and the flush lies outside of every pair of events. A reading is the
// mean of its k runs of each side: one run of a few microseconds is too close to the resolution of an event (and to the
// jitter of a launch) to be a reading. The order of the two alternates from run to run.
//
// Events, not time stamps of our own kernels: a stamp is one more launch on either side of what is timed, of the length
// of what is timed. Not a CUDA graph: captured steps start closer to each other than launches do, which is not how
// either side is run, and LibTorch's allocations do not happen in a replay.
//
// Where in the memory a computation works changes its time, by more than everything else for long runs. So everything
// moves after some readings; what a pair has in common with all pairs of its place is then not what decides.
//
// Seconds are those of CUDA events; the sum of all of them must fit into the wall clock of the loop, or somebody has
// tampered with the events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "verify/execute/timing_protocol.h"

namespace tritonrl {

// How the cache is emptied before a run.
enum class Flush {
  kWrite,  // Zeros are written: leaves the cache full of lines that have to be written back.
  kRead,   // Something else is read: leaves lines that can be dropped.
};

struct TimingRequest {
  std::function<void()> reference, candidate;  // Queue one run each.
  std::function<void()> restore;               // Puts changed inputs back, outside of what is timed; may be empty.
  std::function<void(bool of_reference)> before, after;  // Of every reading's run, outside of what is timed; may be
                                                         // empty. They queue and do not wait.
  std::function<void()> move;  // Brings everything to other places of the memory; may be empty.
  ReadingSpec spec;
  Flush flush = Flush::kRead;
  int64_t first_place = 0;
};

// Throws ReplayFailure. CUDA only.
std::vector<Reading> take_readings(const TimingRequest& request);

// Are these runs of the same computation on the same inputs? Each is described by a number an output (the sum of its
// magnitudes, say); sums in another order are alike, what was left out or never written is not.
bool alike_runs(const std::vector<double>& one, const std::vector<double>& other);

// Device seconds between the two marks of every step, for the share of Triton in a tape: fn(mark) runs the tape and
// calls mark(step, before).
std::vector<double> time_steps(size_t steps, const std::function<void(std::function<void(size_t, bool)>)>& fn);

// Readings of some computations against themselves: a list of repeats for each computation. What a protocol makes of
// them is how far the ratio of equals gets from 1.
std::vector<std::vector<std::vector<Reading>>> measure_noise(const ReadingSpec& spec);

// What this GPU reaches: bytes per second of a large copy (read + write).
double peak_bandwidth();

// Kernels that run for a known time by the GPU's own timer, to hold readings against.
std::function<void()> known_run(double seconds);

// Seconds between two events with nothing in between: what every measured run has on top.
double empty_bracket();

}  // namespace tritonrl
