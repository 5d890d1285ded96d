// SPDX-License-Identifier: Apache-2.0
// libtritonrl_nccl.so: c10d's NCCL for train/ranks.h.
#include <c10/cuda/CUDAGuard.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

// A group of so many ranks, of which this one has `device`; the caller owns it. Throws what c10d throws.
extern "C" __attribute__((visibility("default"))) c10d::Backend* tritonrl_nccl_group(c10d::Store* store, int rank,
                                                                                     int size, int8_t device) {
  c10::cuda::CUDAGuard guard(device);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  // Whoever is late is late with the micro batches of one update: everything longer is waited for elsewhere.
  options->timeout = std::chrono::minutes(10);
  auto shared = c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(store);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(shared, rank, size, options).release();
}
