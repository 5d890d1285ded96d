// SPDX-License-Identifier: Apache-2.0
// The verifier's own kernels (own_kernels.h and error_kernels.h say what each is for), for NVRTC: they include nothing.
//
// Compiled with --fmad=false: a sum and a product are fused where fma() says so and nowhere else.
namespace tritonrl {

using uint32_t = unsigned;
using uint64_t = unsigned long long;

__device__ uint64_t first_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ uint64_t grid_size() { return gridDim.x * blockDim.x; }

__device__ uint64_t global_ns() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void count_damage(const volatile uint32_t* at, uint64_t words, uint32_t pattern, uint32_t* counter) {
  for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
    if (at[i] != pattern) atomicAdd(counter, 1u);
  }
}

// A block fills a span. own_kernels.h has the same structure.
struct Spans {
  uint32_t* at[64];
  uint32_t words[64];
};

__global__ void fill_spans(Spans spans, uint32_t pattern) {
  for (uint32_t i = threadIdx.x; i < spans.words[blockIdx.x]; i += blockDim.x) spans.at[blockIdx.x][i] = pattern;
}

__device__ uint64_t mix(uint32_t word, uint64_t place, uint64_t key) {
  uint64_t x = ((place << 32) + word) ^ key;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 29;
}

__global__ void hash(const unsigned char* at, uint64_t bytes, uint64_t key, uint64_t* out) {
  const auto* words = reinterpret_cast<const uint32_t*>(at);
  uint64_t sum = 0;
  for (uint64_t i = first_of_grid(); i < bytes / 4; i += grid_size()) sum += mix(words[i], i, key);
  for (uint64_t i = bytes / 4 * 4 + first_of_grid(); i < bytes; i += grid_size()) sum += mix(at[i], i, key);
  atomicAdd(out, sum);
}

__global__ void hold(const volatile uint32_t* flag, uint64_t limit_ns) {
  uint64_t start = global_ns();
  while (*flag == 0 && global_ns() - start < limit_ns) {
  }
}

__global__ void read_clock(volatile uint64_t* out, uint64_t ns) {
  uint64_t first = global_ns(), start, now;
  long long from, to;
  do {
    start = global_ns();
    from = clock64();
  } while (start == first);
  do {
    now = global_ns();
    to = clock64();
  } while (now - start < ns);
  out[0] = static_cast<uint64_t>(to - from);
  out[1] = now - start;
}

__global__ void spin(uint64_t ns) {
  uint64_t start = global_ns();
  while (global_ns() - start < ns) {
  }
}

// No load of CUDA C++ reads 16 bytes and is volatile; the others have caching hints, which matter here.
__global__ void read_through(const uint4* at, uint64_t bytes, uint32_t* sink) {
  uint32_t seen = 0;
  for (uint64_t i = first_of_grid(); i < bytes / sizeof(uint4); i += grid_size()) {
    uint32_t a, b, c, d;
    asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at + i));
    seen |= a ^ b ^ c ^ d;
  }
  if (seen == 0xAAAAAAAAu) *sink = seen;
}

// ---------------------------------------------------------------------------------------------------------- comparing

struct Half {
  unsigned short bits;
};
struct Bf16 {
  unsigned short bits;
};
__device__ double wide(double x) { return x; }
__device__ double wide(float x) { return x; }
__device__ double wide(Bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
__device__ double wide(Half x) {
  double y;
  asm("cvt.f64.f16 %0, %1;" : "=d"(y) : "h"(x.bits));
  return y;
}

__device__ double infinity() { return __longlong_as_double(0x7FF0000000000000); }

__device__ void add_to(double* out, double sum) {
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

// Numbers that are not negative are in the order of their bits.
__device__ void raise_to(double* out, double most) {
  for (int lanes = 16; lanes > 0; lanes /= 2) most = fmax(most, __shfl_down_sync(0xffffffffu, most, lanes));
  if (threadIdx.x % 32 == 0) {
    atomicMax(reinterpret_cast<uint64_t*>(out), static_cast<uint64_t>(__double_as_longlong(most)));
  }
}

template <class T>
__global__ void moments(const double* truth, const T* other, uint64_t count, double, double, const float*, uint32_t,
                        uint64_t, double* out) {
  double truths = 0, errors = 0, finite = 0;
  for (uint64_t i = first_of_grid(); i < count; i += grid_size()) {
    double t = truth[i], x = wide(other[i]), e = x - t;
    if (!(fabs(x) < infinity() && fabs(t) < infinity())) continue;
    truths = fma(t, t, truths);
    errors = fma(e, e, errors);
    finite += 1;
  }
  add_to(out, truths);
  add_to(out + 1, errors);
  add_to(out + 2, finite);
}

template <class T>
__global__ void bounded(const double* truth, const T* other, uint64_t count, double relative, double absolute,
                        const float* slack, uint32_t shift, uint64_t first, double* out) {
  double squares = 0, most = 0;
  for (uint64_t i = first_of_grid(); i < count; i += grid_size()) {
    double t = truth[i], e = wide(other[i]) - t;
    squares = fma(e, e, squares);
    double ratio = fabs(e) / (fma(fabs(t), relative, absolute) + slack[(first + i) >> shift]);
    most = fmax(most, ratio < infinity() ? ratio : infinity());
  }
  add_to(out, squares);
  raise_to(out + 2, most);
}

}  // namespace tritonrl
