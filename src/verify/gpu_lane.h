// SPDX-License-Identifier: Apache-2.0
// GPU lanes: the verifier's side of the judges, one per GPU, or some on the processor where there is none. Free of
// torch and of CUDA: a lane is a program and a socket.
//
//   auto lanes = GpuLanes::open({{"cuda:0"}});
//   GpuLease lane = lanes->acquire();                       // blocks until a GPU is free
//   lane.give_task(key, reference_recording); lane.give_candidate(recording);
//   GpuAnswer answer = lane.run({...});
//
// A lease holds its GPU for all of a candidate's stages, so nothing else disturbs its timing. A judge that dies is
// started again; what it was asked is answered `lost`, which is our fault and never a candidate's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_device.h"
#include "verify/channel.h"
#include "verify/compare.h"
#include "verify/timing_protocol.h"
#include "verify/verdict.h"

namespace tritonrl {

struct GpuInfo {
  std::string device;                            // "cuda:0".
  std::string name;                              // "NVIDIA H200".
  int64_t memory = 0;                            // Bytes.
  double bandwidth = 0;                          // Bytes per second of a large copy, measured.
  std::vector<std::pair<double, double>> noise;  // (seconds of a run, how far from 1 a ratio of equals gets); may be
                                                 // empty.

  // The band for a run of `seconds`: that of the nearest duration measured.
  double noise_band(double seconds) const;
};

// One run of a recorded case.
struct GpuRun {
  std::string task, name;                 // Key of the task, name of the recorded case.
  std::string values;                     // What becomes of the inputs drawn (case_source.h); "" = nothing.
  bool additional = false;                // Where the reference fails, the answer is a pass with "skipped": why.
  Precision precision = Precision::kOwn;  // What its outputs are held to.
  int64_t weight_seed = 0, input_seed = 0;
  uint64_t poison = 0;
  bool backwards = false;  // Programs from the last to the first, where their order can be chosen.
  bool launches = true;    // false: the kill switch.
  double growth = 1;       // How many times the original's elements the case's arrays have.
  double deadline_s = 60;
};

struct GpuTiming {
  std::string task, name;
  int64_t weight_seed = 0, reference_seed = 0, candidate_seed = 0;  // Different inputs for the two.
  ReadingSpec spec;
  int64_t first_place = 0;  // Of the memory, where this is not the first batch of readings.
  bool again = false;       // More readings of what was timed last.
  double deadline_s = 60;
};

struct GpuAnswer {
  Finding finding = Rule::kVerifierFailed;
  bool lost = false;    // The judge is gone: worth another try.
  std::string ended;    // What the reference did to it; "" = nothing.
  Json body;            // Everything the judge said,
  std::string payload;  // ... and the tensors with it.
};

class GpuLanes;

// Exclusive use of one GPU. Thread rule: one thread.
class GpuLease {
 public:
  GpuLease(GpuLease&& other) noexcept : lanes_(std::exchange(other.lanes_, nullptr)), lane_(other.lane_) {}
  ~GpuLease();

  const GpuInfo& info() const;
  // Only sends a task that the judge does not hold yet.
  GpuAnswer give_task(const std::string& key, const std::string& recording);
  GpuAnswer give_candidate(const std::string& recording);
  GpuAnswer run(const GpuRun& run);
  // "inputs" or "compare" (verify/gpu/judge.h) for a run that is done elsewhere; `more` goes with the question.
  GpuAnswer ask_about(const char* what, const GpuRun& run, const Json& more, const std::string& payload,
                      double deadline_s);
  GpuAnswer time(const GpuTiming& timing);
  // Measures the noise of timing where that was not done, or long ago. Throws Error (environment).
  void freshen_noise();
  // While it lives nobody else works on the GPU; blocks until then (GpuLanes::shared).
  SharedDevice::Quiet quiet() const;
  // Of a task; its two input seeds, weight seed and deadline count. `drops`: operations are left out in turn.
  GpuAnswer lint(const GpuTiming& what, bool drops = true);
  void kill_judge();            // For tests.
  pid_t judge_process() const;  // For tests; -1 = none.

 private:
  friend class GpuLanes;
  GpuLease(GpuLanes* lanes, size_t lane) : lanes_(lanes), lane_(lane) {}
  GpuAnswer ask(const Json& question, const std::string& payload, double seconds);
  GpuLanes* lanes_;
  size_t lane_;
};

struct LaneOptions {
  std::vector<std::string> devices;  // "cuda:0", ..., or "cpu".
  // Given one, each GPU's judge measures with it how far from 1 the ratio of equals gets: before the first timing, and
  // again when that is ten minutes old.
  std::shared_ptr<const TimingProtocol> protocol = nullptr;
  bool replayers = true;  // false: candidates are run elsewhere. On "cpu" replayers are for tests: no launches there.
  int64_t memory_bytes = 0;  // That a judge on the processor may take; 0 = no limit.
  // Starts the program of a judge; empty = the one of the build.
  std::function<std::unique_ptr<Channel>(const std::string& device)> start = nullptr;
};

class GpuLanes {
 public:
  // One lane per device. Throws Error (environment).
  static std::unique_ptr<GpuLanes> open(LaneOptions options);
  // GPUs of this machine that may be used, honouring CUDA_VISIBLE_DEVICES; empty without a driver.
  static std::vector<std::string> devices();
  ~GpuLanes();

  // Blocks. Throws Error (environment) when every GPU was given up. Thread rule: any thread.
  GpuLease acquire();
  // The GPU of that name, for whoever else uses it: timing waits until it has given way. Null where there is none.
  SharedDevice* shared(const std::string& name);
  size_t size() const { return lanes_.size(); }
  const GpuInfo& info(size_t lane) const { return lanes_[lane]->info; }

 private:
  friend class GpuLease;
  struct Lane {
    std::unique_ptr<Channel> channel;
    GpuInfo info;
    std::vector<std::string> tasks;  // Keys that were given.
    bool busy = false;
    std::string given_up;    // Why this GPU is used no more; "" = it is.
    double measured_at = 0;  // When info.noise was.
    SharedDevice shared;
  };
  void start(Lane& lane);
  void measure(Lane& lane);
  bool noise_is_old(const Lane& lane) const;
  void release(size_t lane);

  LaneOptions options_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tritonrl
