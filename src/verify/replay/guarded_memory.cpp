// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/guarded_memory.h"

#include <cuda_runtime_api.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "verify/replay/driver.h"
#include "verify/replay/own_kernels.h"

namespace tritonrl {
namespace {

constexpr size_t kSlab = size_t{64} << 20;
constexpr size_t kLarge = size_t{4} << 20;  // From here on, a block is an allocation of its own.

struct Block {
  size_t bytes = 0;   // Between the guards, rounded up.
  size_t wanted = 0;  // As asked for: the upper guard begins at the next word.
  bool own = false;   // Its own cudaMalloc.
};

struct State {
  size_t cap = 0, held = 0;
  size_t alive = 0, peak = 0;  // Bytes as asked for.
  bool poisoning = true;
  uint32_t pattern = 0x7fffffff;
  std::unordered_map<void*, Block> live;
  std::multimap<size_t, void*> free_own;
  std::map<size_t, std::vector<void*>> free_small;
  std::map<void*, size_t> left;  // Freed since the last sweep, and their bytes between the guards.
  char* slab = nullptr;
  size_t slab_left = 0;
  uint32_t* counter = nullptr;
};
State& state() {
  static State s;
  return s;
}

size_t rounded(size_t bytes) {
  size_t unit = bytes < kLarge ? 512 : (size_t{2} << 20);
  return (bytes + unit - 1) / unit * unit;
}

void* device_malloc(size_t bytes) {
  State& s = state();
  if (s.held + bytes > s.cap) GuardedMemory::trim();
  void* at = nullptr;
  if (s.held + bytes > s.cap || cudaMalloc(&at, bytes) != cudaSuccess) {
    cudaGetLastError();
    GuardedMemory::trim();
    if (s.held + bytes > s.cap || cudaMalloc(&at, bytes) != cudaSuccess) {
      cudaGetLastError();
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory: ", bytes >> 20, " MiB more than the ",
                       s.held >> 20, " MiB in use");
    }
  }
  s.held += bytes;
  return at;
}

CUdeviceptr device(void* at) { return reinterpret_cast<CUdeviceptr>(at); }

// Where the zones lie around `at`. The upper one begins at the first word after the bytes that were asked for.
void paint(void* at, const Block& block, bool inside) {
  State& s = state();
  const CudaDriver& driver = CudaDriver::get();
  CUdeviceptr begin = device(at);
  size_t used = (block.wanted + 3) / 4 * 4, guard = GuardedMemory::kGuardBytes;
  driver.check(driver.fill(begin - guard, s.pattern, guard / 4, nullptr), "painting guards");
  if (inside) driver.check(driver.fill(begin, s.pattern, used / 4, nullptr), "poisoning");
  driver.check(driver.fill(begin + used, s.pattern, (block.bytes - used + guard) / 4, nullptr), "painting guards");
}

void inspect(void* at, const Block& block) {
  State& s = state();
  CUdeviceptr begin = device(at), counter = device(s.counter);
  size_t used = (block.wanted + 3) / 4 * 4, guard = GuardedMemory::kGuardBytes;
  OwnKernels::get().count_damage(begin - guard, guard / 4, s.pattern, counter);
  OwnKernels::get().count_damage(begin + used, guard / 4, s.pattern, counter);
}

void* allocate(size_t wanted, int, cudaStream_t) {
  if (wanted == 0) return nullptr;
  State& s = state();
  Block block{rounded(wanted), wanted, wanted >= kLarge};
  char* at = nullptr;
  size_t whole = block.bytes + 2 * GuardedMemory::kGuardBytes;
  if (block.own) {
    auto it = s.free_own.lower_bound(block.bytes);
    if (it != s.free_own.end() && it->first <= block.bytes + block.bytes / 4) {
      block.bytes = it->first;
      at = static_cast<char*>(it->second);
      s.free_own.erase(it);
    } else {
      at = static_cast<char*>(device_malloc(whole)) + GuardedMemory::kGuardBytes;
    }
  } else {
    auto& list = s.free_small[block.bytes];
    if (!list.empty()) {
      at = static_cast<char*>(list.back());
      list.pop_back();
    } else {
      if (s.slab_left < whole) {
        s.slab = static_cast<char*>(device_malloc(kSlab));
        s.slab_left = kSlab;
      }
      at = s.slab + GuardedMemory::kGuardBytes;
      s.slab += whole;
      s.slab_left -= whole;
    }
  }
  if (s.poisoning) paint(at, block, /*inside=*/true);
  s.left.erase(at);
  s.live.emplace(at, block);
  s.alive += wanted;
  s.peak = std::max(s.peak, s.alive);
  return at;
}

void release(void* at, size_t, int, cudaStream_t) {
  if (!at) return;
  State& s = state();
  auto it = s.live.find(at);
  CHECK(it != s.live.end()) << "freeing what was never handed out";
  if (s.poisoning) {
    try {
      inspect(at, it->second);
    } catch (const ReplayFailure&) {  // A spoilt context: the next call that waits will say so.
    }
  }
  s.left[at] = it->second.bytes;
  if (it->second.own) {
    s.free_own.emplace(it->second.bytes, at);
  } else {
    s.free_small[it->second.bytes].push_back(at);
  }
  s.alive -= it->second.wanted;
  s.live.erase(it);
}

}  // namespace

void GuardedMemory::install(size_t cap_bytes) {
  State& s = state();
  s.cap = cap_bytes;
  auto allocator = torch::cuda::CUDAPluggableAllocator::createCustomAllocator(allocate, release);
  torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
  void* counter = nullptr;
  CHECK(cudaMalloc(&counter, 4) == cudaSuccess) << "no GPU memory at all";
  s.counter = static_cast<uint32_t*>(counter);
  cudaMemset(counter, 0, 4);
}

void GuardedMemory::new_poison(uint32_t random) {
  State& s = state();
  if (s.poisoning) {
    for (const auto& [at, block] : s.live) inspect(at, block);
  }
  // NaN as fp32, as both halves in fp16 and bf16, and as fp64.
  s.pattern = 0x7fc0ffc0u | (random & 0x3fu) | ((random >> 6 & 0x3fu) << 16);
  if (s.poisoning) {
    for (const auto& [at, block] : s.live) paint(at, block, /*inside=*/false);
  }
}

void GuardedMemory::set_poisoning(bool on) {
  State& s = state();
  if (on == s.poisoning) return;
  if (!on) {
    for (const auto& [at, block] : s.live) inspect(at, block);
  }
  s.poisoning = on;
  if (on) {
    for (const auto& [at, block] : s.live) paint(at, block, /*inside=*/false);
  }
}

void GuardedMemory::sweep() {
  State& s = state();
  const CudaDriver& driver = CudaDriver::get();
  for (const auto& [at, bytes] : s.left) {
    driver.check(driver.fill(device(at) - kGuardBytes, s.pattern, (bytes + 2 * kGuardBytes) / 4, nullptr), "sweeping");
  }
  s.left.clear();
  Spans spans{};
  size_t count = 0;
  auto fill = [&] { OwnKernels::get().fill(spans, std::exchange(count, 0), s.pattern); };
  auto add = [&](CUdeviceptr begin, size_t bytes) {
    spans.at[count] = begin;
    spans.words[count] = static_cast<uint32_t>(bytes / 4);
    if (++count == Spans::kMost) fill();
  };
  for (const auto& [at, block] : s.live) {
    size_t used = (block.wanted + 3) / 4 * 4;
    add(device(at) - kGuardBytes, kGuardBytes);
    add(device(at) + used, block.bytes - used + kGuardBytes);
  }
  fill();
}

int64_t GuardedMemory::damage() {
  State& s = state();
  if (s.poisoning) {
    for (const auto& [at, block] : s.live) inspect(at, block);
  }
  uint32_t words = 0;
  const CudaDriver& driver = CudaDriver::get();
  driver.check(driver.synchronize(nullptr), "running");
  cudaMemcpy(&words, s.counter, 4, cudaMemcpyDeviceToHost);
  cudaMemset(s.counter, 0, 4);
  return words;
}

size_t GuardedMemory::live_bytes() { return state().alive; }

size_t GuardedMemory::peak_bytes() { return state().peak; }

void GuardedMemory::reset_peak() { state().peak = state().alive; }

void GuardedMemory::rotate() {
  State& s = state();
  for (auto& [bytes, list] : s.free_small) {
    if (list.size() > 1) std::rotate(list.begin(), list.begin() + 1, list.end());
  }
  for (auto it = s.free_own.begin(); it != s.free_own.end();) {
    auto [first, last] = s.free_own.equal_range(it->first);
    void* at = first->second;  // The oldest of its size becomes the youngest.
    auto before = first;
    for (auto next = std::next(first); next != last; before = next++) before->second = next->second;
    before->second = at;
    it = last;
  }
}

void GuardedMemory::trim() {
  State& s = state();
  for (const auto& [bytes, at] : s.free_own) {
    s.left.erase(at);
    if (cudaFree(static_cast<char*>(at) - kGuardBytes) == cudaSuccess) s.held -= bytes + 2 * kGuardBytes;
  }
  s.free_own.clear();
}

}  // namespace tritonrl
