// SPDX-License-Identifier: Apache-2.0
// Our packed CPU GEMM against at::linear on the shapes of a small decoder: bench_gemm [--benchmark_filter=...].
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include "model/cpu/kernels.h"

namespace {

using tritonrl::cpu::half;

void shapes(benchmark::internal::Benchmark* b) {
  for (int64_t t : {1, 16, 64, 512, 1600}) {
    b->Args({t, 3072, 576});
    b->Args({t, 576, 1536});
  }
  b->Args({16, 49152, 576});
}

at::Tensor random(int64_t rows, int64_t columns) { return at::randn({rows, columns}).to(at::kBFloat16); }

void count(benchmark::State& state) {
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * state.range(0) * state.range(1) * state.range(2),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void ours(benchmark::State& state) {
  int64_t t = state.range(0), n = state.range(1), k = state.range(2);
  auto x = random(t, k), w = random(n, k), out = at::empty({t, n}, at::kBFloat16);
  auto packed = at::empty({tritonrl::cpu::packed_size(n, k)}, at::kBFloat16);
  const auto& kernels = tritonrl::cpu::kernels();
  kernels.pack_half(static_cast<half*>(w.data_ptr()), n, k, static_cast<half*>(packed.data_ptr()));
  for (auto _ : state) {
    kernels.gemm_half(static_cast<half*>(x.data_ptr()), t, k, static_cast<half*>(packed.data_ptr()), n, nullptr,
                      out.data_ptr(), tritonrl::cpu::Store::kSame);
  }
  count(state);
}

void aten(benchmark::State& state) {
  auto x = random(state.range(0), state.range(2)), w = random(state.range(1), state.range(2));
  for (auto _ : state) benchmark::DoNotOptimize(at::linear(x, w));
  count(state);
}

BENCHMARK(ours)->Apply(shapes)->UseRealTime();
BENCHMARK(aten)->Apply(shapes)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
