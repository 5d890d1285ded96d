// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/timing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/log.h"
#include "base/stats.h"
#include "base/text.h"
#include "verify/replay/driver.h"
#include "verify/replay/own_kernels.h"
#include "verify/replay/tape.h"

namespace tritonrl {
namespace {

constexpr int64_t kMostRuns = 16;               // Of each side in one reading.
constexpr double kMostQueueing = 0.03;          // Seconds the host may need to queue a reading.
constexpr size_t kLeastInBudget = 6;            // Readings a batch has at least.
constexpr uint64_t kClockNs = 20'000;           // That a reading of the SM clock takes.
constexpr uint64_t kHoldLimitNs = 200'000'000;  // A hold lets go by itself, should the queue block the host.

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw ReplayFailure{{Rule::kKernelFailed, cat(what, ": ", cudaGetErrorString(result))}, true};
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record() { check(cudaEventRecord(event_, nullptr), "an event"); }
  double seconds_since(const Event& start) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start.event_, event_), "an event");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Keeps the stream waiting from construction to release().
class Hold {
 public:
  Hold() {
    static uint32_t* flag = [] {
      void* memory = nullptr;
      check(cudaHostAlloc(&memory, 4, cudaHostAllocMapped), "mapped memory");
      return static_cast<uint32_t*>(memory);
    }();
    flag_ = flag;
    *flag_ = 0;
    void* device = nullptr;
    check(cudaHostGetDevicePointer(&device, flag_, 0), "mapped memory");
    OwnKernels::get().hold(reinterpret_cast<CUdeviceptr>(device), kHoldLimitNs);
  }
  ~Hold() { release(); }
  void release() { *reinterpret_cast<volatile uint32_t*>(flag_) = 1; }

 private:
  uint32_t* flag_;
};

at::Tensor& flush_buffer() {
  static at::Tensor buffer;
  if (!buffer.defined()) {
    int device = 0;
    cudaDeviceProp properties;
    check(cudaGetDevice(&device), "the device");
    check(cudaGetDeviceProperties(&properties, device), "device properties");
    int64_t bytes = std::max<int64_t>(3 * int64_t{properties.l2CacheSize}, 32 << 20) / 512 * 512;
    buffer = at::zeros({bytes}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  }
  return buffer;
}

void flush_cache(Flush flush) {
  at::Tensor& buffer = flush_buffer();
  if (flush == Flush::kWrite) {
    check(cudaMemsetAsync(buffer.data_ptr(), 0, buffer.nbytes(), nullptr), "flushing the cache");
    return;
  }
  static at::Tensor sink = at::zeros({1}, at::TensorOptions(at::kCUDA).dtype(at::kInt));
  OwnKernels::get().read_through(reinterpret_cast<CUdeviceptr>(buffer.data_ptr()), buffer.nbytes(),
                                 reinterpret_cast<CUdeviceptr>(sink.data_ptr()));
}

void finish() { check(cudaStreamSynchronize(nullptr), "running"); }

// The SM clock, read on the device: queue() and, when the device has come by, megahertz().
class ClockProbe {
 public:
  ClockProbe() {
    static uint64_t* words = [] {
      void* memory = nullptr;
      check(cudaHostAlloc(&memory, 16, cudaHostAllocMapped), "mapped memory");
      return static_cast<uint64_t*>(memory);
    }();
    words_ = words;
  }
  void queue() {
    words_[0] = words_[1] = 0;
    void* device = nullptr;
    check(cudaHostGetDevicePointer(&device, words_, 0), "mapped memory");
    OwnKernels::get().read_clock(reinterpret_cast<CUdeviceptr>(device), kClockNs);
  }
  double megahertz() const {
    const volatile uint64_t* words = words_;
    return words[1] > 0 ? 1e3 * static_cast<double>(words[0]) / static_cast<double>(words[1]) : 0;
  }

 private:
  uint64_t* words_;
};

// Takes readings of k runs of each side.
class Reader {
 public:
  explicit Reader(const TimingRequest& request) : request_(request) {}

  // `turn`: which side begins.
  Reading take(int64_t k, int64_t turn) {
    while (events_.size() < static_cast<size_t>(4 * k)) events_.push_back(std::make_unique<Event>());
    double began = now_s();
    if (request_.restore) request_.restore();
    {
      Hold hold;
      for (int64_t run = 0; run < k; ++run) {
        for (int64_t half = 0; half < 2; ++half) {
          bool reference = is_reference(run, half, turn);
          if (request_.before) request_.before(reference);
          if (request_.spec.cold) flush_cache(request_.flush);
          size_t at = static_cast<size_t>(4 * run + 2 * half);
          events_[at]->record();
          reference ? request_.reference() : request_.candidate();
          events_[at + 1]->record();
          if (request_.after) request_.after(reference);
        }
      }
      if (request_.spec.clock) clock_.queue();
      queue_s_ = now_s() - began;
    }
    finish();
    Reading reading;
    for (int64_t run = 0; run < k; ++run) {
      for (int64_t half = 0; half < 2; ++half) {
        size_t at = static_cast<size_t>(4 * run + 2 * half);
        double seconds = events_[at + 1]->seconds_since(*events_[at]);
        total_s_ += seconds;
        (is_reference(run, half, turn) ? reading.reference_s : reading.candidate_s) += seconds;
      }
    }
    reading.reference_s /= static_cast<double>(k);
    reading.candidate_s /= static_cast<double>(k);
    if (request_.spec.clock) reading.clock_mhz = clock_.megahertz();
    reading.seconds = now_s() - began;
    return reading;
  }

  double queue_s() const { return queue_s_; }  // That the host needed for the last reading.
  double total_s() const { return total_s_; }

 private:
  static bool is_reference(int64_t run, int64_t half, int64_t turn) { return (run + half + turn) % 2 == 0; }

  const TimingRequest& request_;
  std::vector<std::unique_ptr<Event>> events_;
  ClockProbe clock_;
  double queue_s_ = 0, total_s_ = 0;
};

}  // namespace

std::vector<Reading> take_readings(const TimingRequest& request) {
  const ReadingSpec& spec = request.spec;
  double start = now_s();
  auto spent = [&](double share) { return spec.budget_s > 0 && now_s() - start > share * spec.budget_s; };
  for (int64_t i = 0; i < spec.warm_ups && (i == 0 || !spent(0.2)); ++i) {
    if (request.restore) request.restore();
    request.reference();
    request.candidate();
    finish();
  }
  Reader reader(request);
  int64_t k = 1;
  if (spec.span_s > 0 && !request.restore) {  // A restored input must not be run on twice.
    Reading trial = reader.take(1, 0);
    double pair_s = std::max(trial.reference_s + trial.candidate_s, 1e-7);
    double most = std::min<double>(kMostRuns, kMostQueueing / std::max(reader.queue_s(), 1e-7));
    k = static_cast<int64_t>(std::max(1.0, std::min(most, std::ceil(spec.span_s / pair_s))));
  }
  std::vector<Reading> readings;
  int64_t place = request.first_place;
  for (int64_t i = 0; i < spec.batch && !(readings.size() >= kLeastInBudget && spent(1)); ++i) {
    bool moves = request.move && spec.readings_per_place > 0 && i % spec.readings_per_place == 0;
    if (moves) {
      request.move();
      ++place;
      reader.take(1, 0);  // The first runs in a new place also take its memory.
    }
    readings.push_back(reader.take(k, i));
    readings.back().place = place;
  }
  double wall = now_s() - start;
  if (reader.total_s() > wall * 1.02 + 1e-3) {
    throw ReplayFailure{{Rule::kForgedResult, "the GPU's clock says more than the wall's"}};
  }
  return readings;
}

bool alike_runs(const std::vector<double>& one, const std::vector<double>& other) {
  constexpr double kApart = 0.25;  // A sum near zero may change by more than its rounding.
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::abs(a - b) <= kApart * std::max(std::abs(a), std::abs(b)) + 1e-30;
  });
}

std::vector<double> time_steps(size_t steps, const std::function<void(std::function<void(size_t, bool)>)>& fn) {
  std::vector<Event> before(steps), after(steps);
  std::vector<bool> seen(steps, false);
  {
    Hold hold;
    fn([&](size_t step, bool is_before) {
      (is_before ? before : after)[step].record();
      seen[step] = true;
    });
    hold.release();
  }
  finish();
  std::vector<double> seconds(steps, 0);
  for (size_t i = 0; i < steps; ++i) {
    if (seen[i]) seconds[i] = after[i].seconds_since(before[i]);
  }
  return seconds;
}

std::vector<std::vector<std::vector<Reading>>> measure_noise(const ReadingSpec& spec) {
  constexpr int kRepeats = 5;
  struct Side {
    at::Tensor from, to;
  };
  struct Computation {
    bool product;
    int64_t n;  // Rows of a square product; else MiB.
  };
  std::vector<std::vector<std::vector<Reading>>> all;
  for (Computation computation : {Computation{false, 1}, {false, 32}, {true, 2048}, {true, 4096}, {false, 1024}}) {
    auto options = at::TensorOptions(at::kCUDA).dtype(computation.product ? at::kBFloat16 : at::kFloat);
    std::vector<int64_t> shape{computation.n << 18};
    if (computation.product) shape = {computation.n, computation.n};
    auto run = [&](const Side& side) {
      at::Tensor to = side.to;
      computation.product ? at::mm_out(to, side.from, side.from) : at::mul_out(to, side.from, side.from);
    };
    std::vector<std::vector<Reading>> repeats;
    try {
      std::vector<Side> kept;
      for (int i = 0; i < kRepeats; ++i) {
        Side a{at::randn(shape, options), at::empty(shape, options)},
            b{at::randn(shape, options), at::empty(shape, options)};
        kept.push_back(i % 2 ? a : b);  // So that the next one lies elsewhere.
        if (kept.size() > 2) kept.erase(kept.begin());
        TimingRequest request;
        request.spec = spec;
        request.reference = [&] { run(a); };
        request.candidate = [&] { run(b); };
        request.move = [&] {
          for (Side* side : {&a, &b}) {
            side->from = side->from.clone();
            side->to = at::empty_like(side->to);
          }
        };
        repeats.push_back(take_readings(request));
      }
    } catch (const c10::OutOfMemoryError&) {  // Another program is here too: do with the smaller ones.
    }
    if (repeats.size() == kRepeats) all.push_back(std::move(repeats));
  }
  return all;
}

double peak_bandwidth() {
  constexpr int64_t kBytes = int64_t{1} << 30;
  at::Tensor from = at::empty({kBytes}, at::TensorOptions(at::kCUDA).dtype(at::kByte)), to = at::empty_like(from);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    Event start, end;
    start.record();
    check(cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), kBytes, cudaMemcpyDeviceToDevice, nullptr), "copying");
    end.record();
    finish();
    best = std::max(best, 2.0 * kBytes / end.seconds_since(start));
  }
  return best;
}

std::function<void()> known_run(double seconds) {
  auto ns = static_cast<uint64_t>(seconds * 1e9);
  return [ns] { OwnKernels::get().spin(ns); };
}

double empty_bracket() {
  constexpr int kRepeats = 64;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 2 * kRepeats; ++i) events.push_back(std::make_unique<Event>());
  {
    Hold hold;
    for (auto& event : events) event->record();
  }
  finish();
  std::vector<double> seconds;
  for (size_t i = 0; i < events.size(); i += 2) seconds.push_back(events[i + 1]->seconds_since(*events[i]));
  return percentile(seconds, 50);
}

}  // namespace tritonrl
