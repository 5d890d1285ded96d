// SPDX-License-Identifier: Apache-2.0
#include "verify/gpu/timing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/stats.h"
#include "base/text.h"
#include "verify/gpu/driver.h"
#include "verify/gpu/tape.h"

namespace tritonrl {
namespace {

constexpr uint64_t kHoldLimitNs = 200'000'000;  // A hold lets go by itself, should the queue block the host.

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw ReplayFailure{Outcome::kRuntimeError, cat(what, ": ", cudaGetErrorString(result)), true};
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

void flush_cache() {
  static at::Tensor buffer;
  if (!buffer.defined()) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "device properties");
    buffer = at::empty({4 * int64_t{properties.l2CacheSize}}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  }
  check(cudaMemsetAsync(buffer.data_ptr(), 0, buffer.nbytes(), nullptr), "flushing the cache");
}

void finish() { check(cudaStreamSynchronize(nullptr), "running"); }

}  // namespace

std::vector<TimedPair> time_pairs(const TimingRequest& request) {
  for (int64_t i = 0; i < request.warm_ups; ++i) {
    if (request.restore) request.restore();
    request.reference();
    request.candidate();
  }
  finish();
  std::vector<TimedPair> pairs;
  Event events[4];
  double start = now_s(), total = 0;
  for (int64_t i = 0; i < request.readings; ++i) {
    if (request.restore) request.restore();
    bool reference_first = i % 2 == 0;
    Hold hold;
    for (int half = 0; half < 2; ++half) {
      if (request.cold) flush_cache();
      events[2 * half].record();
      (half == 0) == reference_first ? request.reference() : request.candidate();
      events[2 * half + 1].record();
    }
    hold.release();
    finish();
    double first = events[1].seconds_since(events[0]), second = events[3].seconds_since(events[2]);
    pairs.push_back(reference_first ? TimedPair{first, second} : TimedPair{second, first});
    total += first + second;
  }
  double wall = now_s() - start;
  if (total > wall * 1.02 + 1e-3) throw ReplayFailure{Outcome::kTampered, "the GPU's clock says more than the wall's"};
  return pairs;
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

std::vector<NoiseBand> measure_noise() {
  constexpr int kRepeats = 12;
  constexpr size_t kPlaces = 4;
  std::vector<NoiseBand> bands;
  for (int64_t mib : {1, 64, 512, 4096}) {
    // Where in memory a computation works changes its time, so the two of a pair work in different places.
    std::vector<std::pair<at::Tensor, at::Tensor>> places;
    try {
      for (size_t i = 0; i < kPlaces; ++i) {
        at::Tensor from = at::ones({mib << 18}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
        places.emplace_back(from, at::empty_like(from));
      }
    } catch (const c10::OutOfMemoryError&) {
      break;
    }
    NoiseBand band;
    for (size_t i = 0; i < kRepeats; ++i) {
      auto& [from, to] = places[i % kPlaces];
      auto& [other_from, other_to] = places[(i + 1 + i / kPlaces) % kPlaces];
      TimingRequest request;
      request.reference = [from = from, to = to]() mutable { at::mul_out(to, from, from); };
      request.candidate = [from = other_from, to = other_to]() mutable { at::mul_out(to, from, from); };
      std::vector<double> reference, candidate;
      for (const TimedPair& pair : time_pairs(request)) {
        reference.push_back(pair.reference_s);
        candidate.push_back(pair.candidate_s);
      }
      double r = mean(reference), c = mean(candidate);
      band.seconds = r;
      band.ratio = std::max(band.ratio, std::abs(r / c - 1));
    }
    bands.push_back(band);
  }
  return bands;
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

}  // namespace tritonrl
