// SPDX-License-Identifier: Apache-2.0
// JudgeSlots: the verifier's side of the judges, one slot or more per GPU, or some on the processor where there is
// none. Free of torch and of CUDA: a slot is a program and a socket.
//
//   auto slots = JudgeSlots::open({{"cuda:0"}});
//   JudgeLease slot = slots->acquire();                       // blocks until a GPU is free
//   slot.give_task(key, reference_trace); slot.give_candidate(trace);
//   JudgeAnswer answer = slot.run({...});
//
// A lease holds its slot for all of a candidate's stages. Judges that share a GPU run candidates beside each other,
// each with replayers and contexts of its own; whoever times has the GPU alone (quiet()). A judge that dies is started
// again; what it was asked is answered `lost`, which is our fault and never a candidate's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/process/shared_device.h"
#include "verify/execute/compare.h"
#include "verify/execute/timing_protocol.h"
#include "verify/sandbox/channel.h"
#include "verify/trace/target_gpu.h"
#include "verify/verdict.h"

namespace tritonrl {

struct DeviceInfo {
  std::string device;                            // "cuda:0".
  std::string name;                              // "NVIDIA H200".
  TargetGpu gpu;                                 // What kernels for it are compiled for.
  int64_t memory = 0;                            // Bytes.
  double bandwidth = 0;                          // Bytes per second of a large copy, measured.
  std::vector<std::pair<double, double>> noise;  // (seconds of a run, how far from 1 a ratio of equals gets); may be
                                                 // empty.

  // The band for a run of `seconds`: that of the nearest duration measured.
  double noise_band(double seconds) const;
};

// One run of a recorded case.
struct JudgeRun {
  std::string task, name;                   // Key of the task, name of the recorded case.
  std::string values;                       // What becomes of the inputs drawn (case_source.h); "" = nothing.
  bool additional = false;                  // Where the reference fails, the answer is a pass with "skipped": why.
  Precision precision = Precision::kOwn;    // What its outputs are held to.
  int64_t weight_seed = 0, noise_seed = 0;  // Of what __init__ draws, and of what moves weights away from constants.
  int64_t input_seed = 0;
  // Inputs of the calls that come first, one after the other and without any state being reset; the last call is
  // judged.
  std::vector<int64_t> earlier_seeds;
  std::string calls;  // The candidate's case that holds all of these calls; "" = `name`, whose call is repeated.
  // Of an autotuner's configurations: launch n of those with several takes choices[n % size] (again modulo its own);
  // empty = the first.
  std::vector<int64_t> choices;
  uint64_t poison = 0;
  uint64_t manner = 0;   // How the interpreter walks it (worker/PROTOCOL.md), modulo 4.
  bool launches = true;  // false: the Triton launches are left out.
  double growth = 1;     // How many times the original's elements the case's arrays have.
  double deadline_s = 60;
};

struct JudgeTiming {
  std::string task, name;
  Precision precision = Precision::kOwn;  // What the timed outputs are held to.
  int64_t weight_seed = 0, noise_seed = 0;
  int64_t reference_seed = 0, candidate_seed = 0;  // Different inputs for the two.
  ReadingSpec spec;
  int64_t first_place = 0;  // Of the memory, where this is not the first batch of readings.
  bool again = false;       // More readings of what was timed last.
  double deadline_s = 60;
};

struct JudgeAnswer {
  Finding finding = Rule::kVerifierFailed;
  bool lost = false;    // The judge is gone: worth another try.
  std::string ended;    // What the reference did to it; "" = nothing.
  double waited_s = 0;  // Before it was asked, for others who share the GPU.
  Json body;            // Everything the judge said,
  std::string payload;  // ... and the tensors with it.
};

class JudgeSlots;

// Exclusive use of one slot. Thread rule: one thread.
class JudgeLease {
 public:
  JudgeLease(JudgeLease&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)), slot_(other.slot_) {}
  ~JudgeLease();

  const DeviceInfo& info() const;
  // Only sends a task that the judge does not hold yet.
  JudgeAnswer give_task(const std::string& key, const std::string& trace);
  JudgeAnswer give_candidate(const std::string& trace);
  JudgeAnswer run(const JudgeRun& run);
  // "inputs" or "compare" (verify/judge/judge.h) for a run that is done elsewhere; `more` goes with the question.
  JudgeAnswer ask_about(const char* what, const JudgeRun& run, const Json& more, const std::string& payload,
                        double deadline_s);
  JudgeAnswer time(const JudgeTiming& timing);
  // Measures the noise of timing where that was not done, or long ago. Throws Error (environment).
  void freshen_noise();
  // While it lives nobody else works on the GPU; blocks until then (JudgeSlots::shared).
  SharedDevice::Quiet quiet() const;
  // Of a task; its two input seeds, weight seed and deadline count. `drops`: operations are left out in turn.
  JudgeAnswer lint(const JudgeTiming& what, bool drops = true);
  void kill_judge();            // For tests.
  pid_t judge_process() const;  // For tests; -1 = none.

 private:
  friend class JudgeSlots;
  JudgeLease(JudgeSlots* slots, size_t slot) : slots_(slots), slot_(slot) {}
  JudgeAnswer ask(const Json& question, const std::string& payload, double seconds);
  // The same for what works on a GPU that others may be timing on. Is their memory in the way, once more without them.
  JudgeAnswer ask_in_turn(const Json& question, const std::string& payload, double seconds);
  JudgeSlots* slots_;
  size_t slot_;
};

struct SlotOptions {
  std::vector<std::string> devices;  // "cuda:0", ..., or "cpu"; one slot for each time that it is named.
  // Given one, each GPU's judge measures with it how far from 1 the ratio of equals gets: before the first timing, and
  // again when that is ten minutes old.
  std::shared_ptr<const TimingProtocol> protocol = nullptr;
  bool replayers = true;  // false: candidates are run elsewhere. On "cpu" replayers are for tests: no launches there.
  int64_t memory_bytes = 0;  // That a judge on the processor may take; 0 = no limit.
  // Starts the program of a judge; empty = the one of the build.
  std::function<std::unique_ptr<Channel>(const std::string& device)> start = nullptr;
};

class JudgeSlots {
 public:
  // Throws Error (environment).
  static std::unique_ptr<JudgeSlots> open(SlotOptions options);
  // GPUs of this machine that may be used, honouring CUDA_VISIBLE_DEVICES; empty without a driver.
  static std::vector<std::string> devices();
  ~JudgeSlots();

  // Blocks. Of several free slots, one that was given the task `key`; of several kinds of GPUs, `target` (null = any;
  // a slot on the processor is of every kind). Throws Error (environment) when every GPU of it was given up. Thread
  // rule: any thread.
  JudgeLease acquire(const std::string& key = "", const TargetGpu* target = nullptr);
  // The GPUs that are in use, one after the other: what the next candidate is compiled for. Thread rule: any thread.
  TargetGpu next_target();
  bool has(const TargetGpu& target);  // Is one of its kind in use?
  // The GPU of that name, for whoever else uses it: timing waits until it has given way. Null where there is none.
  SharedDevice* shared(const std::string& name);
  size_t size() const { return slots_.size(); }
  const DeviceInfo& info(size_t slot) const { return slots_[slot]->info; }

 private:
  friend class JudgeLease;
  // What the slots of a GPU have in common. The noise is touched while the GPU is quiet.
  struct Device {
    SharedDevice shared;
    bool is_gpu = false;
    int64_t slots = 0;
    double measured_at = 0;  // When info.noise of its slots was.
    // For a slot that may disturb what another one measures; null where there is no other.
    SharedDevice* among_others() { return is_gpu && slots > 1 ? &shared : nullptr; }
  };
  struct Slot {
    std::unique_ptr<Channel> channel;
    DeviceInfo info;
    std::vector<std::string> tasks;  // Keys that were given.
    bool busy = false;
    std::string given_up;  // Why this GPU is used no more; "" = it is.
    std::shared_ptr<Device> on;
    bool is(const TargetGpu& target) const { return !on->is_gpu || info.gpu == target; }
  };
  void start(Slot& slot);
  void measure(Slot& slot);
  bool noise_is_old(const Slot& slot) const;
  void release(size_t slot);

  SlotOptions options_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  size_t next_target_ = 0;
};

}  // namespace tritonrl
