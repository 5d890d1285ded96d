// SPDX-License-Identifier: Apache-2.0
// CUDA kernels of the transformer (kernels.h says what each computes), for NVRTC: they include nothing.
//
// T is float or Bf16; V neighbours are taken at once, 8 or 1. Legend as in kernels.h.
namespace tritonrl::cuda {

using int8_t = signed char;
using int32_t = int;
using int64_t = long long;
using uint32_t = unsigned;
using uint64_t = unsigned long long;

constexpr float kInfinity = __builtin_bit_cast(float, 0x7F800000u);
constexpr unsigned kAll = 0xFFFFFFFFu;

struct Bf16 {
  unsigned short bits;
};
__device__ float to_float(float x) { return x; }
__device__ float to_float(Bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
__device__ void put(float& to, float x) { to = x; }
__device__ void put(Bf16& to, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }

// V neighbours, read and written at once.
template <class T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack {
  T v[V];
};
template <int V, class T>
__device__ Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, class T>
__device__ void store(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

__device__ float warp_sum(float x) {
  for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(kAll, x, o);
  return x;
}

// Over the block, for every thread.
__device__ float block_sum(float x) {
  __shared__ float parts[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? parts[lane] : 0.0f);
}

template <class T, int V>
__global__ void rms_norm(const float* x, const float* weight, int64_t h, float eps, T* y, float* inverse) {
  x += blockIdx.x * h;
  y += blockIdx.x * h;
  float sum = 0;
  for (int64_t i = threadIdx.x * V; i < h; i += blockDim.x * V) {
    auto p = load<V>(x + i);
    for (int j = 0; j < V; ++j) sum += p.v[j] * p.v[j];
  }
  float scale = rsqrtf(block_sum(sum) / static_cast<float>(h) + eps);
  if (inverse && threadIdx.x == 0) inverse[blockIdx.x] = scale;
  for (int64_t i = threadIdx.x * V; i < h; i += blockDim.x * V) {
    auto p = load<V>(x + i), w = load<V>(weight + i);
    Pack<T, V> out;
    for (int j = 0; j < V; ++j) put(out.v[j], p.v[j] * scale * w.v[j]);
    store<V>(y + i, out);
  }
}

template <class T, int V>
__global__ void rms_norm_backward(const T* dy, const float* x, const float* weight, const float* inverse, int64_t h,
                                  float* dx) {
  dy += blockIdx.x * h;
  x += blockIdx.x * h;
  dx += blockIdx.x * h;
  float scale = inverse[blockIdx.x], sum = 0;
  for (int64_t i = threadIdx.x * V; i < h; i += blockDim.x * V) {
    auto d = load<V>(dy + i);
    auto p = load<V>(x + i), w = load<V>(weight + i);
    for (int j = 0; j < V; ++j) sum += to_float(d.v[j]) * w.v[j] * p.v[j];
  }
  float back = block_sum(sum) / static_cast<float>(h) * scale * scale;
  for (int64_t i = threadIdx.x * V; i < h; i += blockDim.x * V) {
    auto d = load<V>(dy + i);
    auto p = load<V>(x + i), w = load<V>(weight + i), out = load<V>(dx + i);
    for (int j = 0; j < V; ++j) out.v[j] += scale * (to_float(d.v[j]) * w.v[j] - p.v[j] * back);
    store<V>(dx + i, out);
  }
}

template <class T>
__global__ void rope(T* x, int64_t row_size, int64_t heads, int64_t d, const int32_t* position, const float* cos,
                     const float* sin, float sign) {
  int64_t half_d = d / 2, table = position[blockIdx.x] * half_d;
  x += blockIdx.x * row_size;
  for (int64_t i = threadIdx.x; i < heads * half_d; i += blockDim.x) {
    int64_t head = i / half_d, j = i % half_d;
    T *first = x + head * d + j, *second = first + half_d;
    float c = cos[table + j], s = sin[table + j] * sign, a = to_float(*first), b = to_float(*second);
    put(*first, a * c - b * s);
    put(*second, b * c + a * s);
  }
}

template <class T, int V>
__global__ void swiglu(const T* gate_up, int64_t n, int64_t width, T* h) {
  int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (at >= n) return;
  int64_t row = at / width, i = at % width;
  auto gate = load<V>(gate_up + row * 2 * width + i), up = load<V>(gate_up + row * 2 * width + width + i);
  Pack<T, V> out;
  for (int j = 0; j < V; ++j) {
    float g = to_float(gate.v[j]);
    put(out.v[j], g / (1 + __expf(-g)) * to_float(up.v[j]));
  }
  store<V>(h + at, out);
}

template <class T, int V>
__global__ void swiglu_backward(const T* dh, const T* gate_up, int64_t n, int64_t width, T* dgate_up) {
  int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (at >= n) return;
  int64_t row = at / width, i = at % width, to = row * 2 * width + i;
  auto gate = load<V>(gate_up + to), up = load<V>(gate_up + to + width), d = load<V>(dh + at);
  Pack<T, V> dgate, dup;
  for (int j = 0; j < V; ++j) {
    float g = to_float(gate.v[j]), sigmoid = 1 / (1 + __expf(-g)), down = to_float(d.v[j]);
    put(dgate.v[j], down * to_float(up.v[j]) * sigmoid * (1 + g * (1 - sigmoid)));
    put(dup.v[j], down * g * sigmoid);
  }
  store<V>(dgate_up + to, dgate);
  store<V>(dgate_up + to + width, dup);
}

template <class T, int V>
__global__ void dropout(const T* x, int64_t n, uint64_t seed, uint32_t limit, float scale, T* y) {
  int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (at >= n) return;
  auto in = load<V>(x + at);
  Pack<T, V> out;
  for (int j = 0; j < V; ++j) {  // The hash of cpu/kernels_impl.inc.
    uint32_t z = static_cast<uint32_t>(at + j) * 0x9E3779B9u + static_cast<uint32_t>(seed);
    z = (z ^ (z >> 16)) * 0x85EBCA6Bu;
    z = (z ^ (z >> 13) ^ static_cast<uint32_t>(seed >> 32)) * 0xC2B2AE35u;
    z ^= z >> 16;
    put(out.v[j], (z & 0xFFFF) < limit ? to_float(in.v[j]) * scale : 0.0f);
  }
  store<V>(y + at, out);
}

// A running maximum with the sum of exp(x - maximum).
struct Softmax {
  float maximum = -kInfinity, sum = 0;
  __device__ void add(float x) {
    if (x <= maximum) {
      sum += __expf(x - maximum);
    } else {
      sum = sum * __expf(maximum - x) + 1;
      maximum = x;
    }
  }
  __device__ void merge(const Softmax& other) {
    if (other.sum == 0) return;
    float most = fmaxf(maximum, other.maximum);
    sum = (sum == 0 ? 0 : sum * __expf(maximum - most)) + other.sum * __expf(other.maximum - most);
    maximum = most;
  }
  __device__ void merge_warp() {
    for (int o = 16; o > 0; o /= 2) {
      Softmax other;
      other.maximum = __shfl_xor_sync(kAll, maximum, o);
      other.sum = __shfl_xor_sync(kAll, sum, o);
      merge(other);
    }
  }
};

template <class T, int V>
__global__ void cross_entropy(T* logits, int64_t v, const int32_t* target, const float* weight, float* log_prob) {
  __shared__ Softmax parts[32];
  T* x = logits + blockIdx.x * v;
  Softmax all;
  for (int64_t i = threadIdx.x * V; i < v; i += blockDim.x * V) {
    auto p = load<V>(x + i);
    for (int j = 0; j < V; ++j) all.add(to_float(p.v[j]));
  }
  all.merge_warp();
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) parts[warp] = all;
  __syncthreads();
  all = lane < blockDim.x / 32 ? parts[lane] : Softmax{};
  all.merge_warp();
  float log_sum = all.maximum + logf(all.sum);
  int64_t own = target[blockIdx.x];
  if (threadIdx.x == 0) log_prob[blockIdx.x] = to_float(x[own]) - log_sum;
  if (!weight) return;
  __syncthreads();
  float scale = weight[blockIdx.x];
  for (int64_t i = threadIdx.x * V; i < v; i += blockDim.x * V) {
    auto p = load<V>(x + i);
    for (int j = 0; j < V; ++j) {
      put(p.v[j], scale * (__expf(to_float(p.v[j]) - log_sum) - (i + j == own ? 1.0f : 0.0f)));
    }
    store<V>(x + i, p);
  }
}

template <class T, int V>
__global__ void store_cache(const T* qkv, int64_t heads, int64_t kv_heads, int64_t d, int64_t capacity,
                            const int32_t* slot, const int32_t* position, T* k_cache, T* v_cache) {
  int64_t row = blockIdx.x, width = kv_heads * d;
  const T* from = qkv + row * (heads + 2 * kv_heads) * d + heads * d;
  int64_t to = static_cast<int64_t>(slot[row]) * kv_heads * capacity * d + static_cast<int64_t>(position[row]) * d;
  for (int64_t i = threadIdx.x * V; i < width; i += blockDim.x * V) {
    int64_t at = to + i / d * capacity * d + i % d;
    store<V>(k_cache + at, load<V>(from + i));
    store<V>(v_cache + at, load<V>(from + width + i));
  }
}

template <class T, int V>
__global__ void dequantize(const int8_t* q, const float* scale, int64_t count, int64_t n, int64_t k, int64_t group,
                           T* out) {
  int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (at >= count) return;
  int64_t row = at / k, g = at % k / group;
  float s = scale[g * n + row];
  auto in = load<V>(q + at);
  Pack<T, V> result;
  for (int j = 0; j < V; ++j) put(result.v[j], static_cast<float>(in.v[j]) * s);
  store<V>(out + at, result);
}

// Each warp sums a run of neighbouring ids; the run the draw falls into is then searched by one warp.
__global__ void sample(const float* logits, int64_t v, int64_t limit, float scale, const double* uniform,
                       int32_t* token, float* log_prob) {
  __shared__ float maxima[32];
  __shared__ int64_t places[32];
  __shared__ double sums[32];
  const float* x = logits + blockIdx.x * v;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  int64_t run = (limit + warps - 1) / warps, begin = warp * run, end = begin + run < limit ? begin + run : limit;

  float most = -kInfinity;
  int64_t place = limit;
  for (int64_t i = begin + lane; i < end; i += 32) {
    float z = x[i] * scale;
    if (z > most) {
      most = z;
      place = i;
    }
  }
  auto reduce = [&] {
    for (int o = 16; o > 0; o /= 2) {
      float other = __shfl_xor_sync(kAll, most, o);
      int64_t where = __shfl_xor_sync(kAll, place, o);
      if (other > most || (other == most && where < place)) {
        most = other;
        place = where;
      }
    }
  };
  reduce();
  if (lane == 0) {
    maxima[warp] = most;
    places[warp] = place;
  }
  __syncthreads();
  most = lane < warps ? maxima[lane] : -kInfinity;
  place = lane < warps ? places[lane] : limit;
  reduce();

  double sum = 0;
  for (int64_t i = begin + lane; i < end; i += 32) sum += expf(x[i] * scale - most);
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(kAll, sum, o);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < warps; ++w) total += sums[w];
  double left = uniform[blockIdx.x] * total;
  int chosen = 0;  // The last run that holds anything, should rounding leave a crumb.
  if (left < 0) {
    chosen = static_cast<int>((place < limit ? place : 0) / run);
  } else {
    double before = left;
    for (int w = 0; w < warps; ++w) {
      if (sums[w] <= 0) continue;
      chosen = w;
      left = before;
      if (before < sums[w]) break;
      before -= sums[w];
    }
  }
  if (warp != chosen) return;

  int64_t id = place < limit ? place : 0;
  if (left >= 0) {
    for (int64_t first = begin; first < end; first += 32) {
      int64_t i = first + lane;
      double p = i < end ? expf(x[i] * scale - most) : 0.0, through = p;
      for (int o = 1; o < 32; o *= 2) {
        double lower = __shfl_up_sync(kAll, through, o);
        if (lane >= o) through += lower;
      }
      unsigned positive = __ballot_sync(kAll, p > 0), past = __ballot_sync(kAll, p > 0 && left < through);
      if (past) {
        id = first + __ffs(static_cast<int>(past)) - 1;
        break;
      }
      if (positive) id = first + 31 - __clz(static_cast<int>(positive));
      left -= __shfl_sync(kAll, through, 31);
    }
  }
  if (lane == 0) {
    token[blockIdx.x] = static_cast<int32_t>(id);
    log_prob[blockIdx.x] = static_cast<float>(static_cast<double>(x[id] * scale - most) - log(total));
  }
}

}  // namespace tritonrl::cuda
