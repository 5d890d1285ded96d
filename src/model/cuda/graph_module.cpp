// SPDX-License-Identifier: Apache-2.0
// libtritonrl_cuda_graph.so: model/cuda/graph.h on LibTorch's CUDA graphs.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "model/cuda/graph.h"

namespace tritonrl::cuda {
namespace {

class TorchGraph : public Graph {
 public:
  void replay() override {
    c10::InferenceMode no_autograd;
    graph.replay();
  }
  at::cuda::CUDAGraph graph;
};

class TorchGraphs : public Graphs {
 public:
  explicit TorchGraphs(c10::Device device) : device_(device), pool_(at::cuda::graph_pool_handle()) {}

  void warm_up(const std::function<void()>& work) override {
    c10::InferenceMode no_autograd;
    c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream(device_.index()), there = stream();
    here.synchronize();
    c10::cuda::CUDAStreamGuard guard(there);
    work();
    there.synchronize();
  }

  // Memory of graphs that are gone would stay with the pool, for nobody.
  ~TorchGraphs() override {
    try {
      if (recorded_) c10::cuda::CUDACachingAllocator::emptyCache(pool_);
    } catch (const std::exception&) {
    }
  }

  std::unique_ptr<Graph> record(const std::function<void()>& work) override {
    recorded_ = true;
    try {
      return attempt(work);
    } catch (const c10::OutOfMemoryError&) {  // While something is recorded, cached memory is not given back.
      c10::cuda::CUDACachingAllocator::emptyCache();
      return attempt(work);
    }
  }

 private:
  std::unique_ptr<Graph> attempt(const std::function<void()>& work) {
    c10::InferenceMode no_autograd;
    auto out = std::make_unique<TorchGraph>();
    c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    c10::cuda::CUDAStreamGuard guard(stream());
    out->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      give_up(out->graph);
      throw;
    }
    out->graph.capture_end();
    return out;
  }

  // Ends a capture that broke. One that CUDA has called off cannot be ended in order: then the allocator is told.
  void give_up(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
      try {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(device_.index(), pool_);
      } catch (const std::exception&) {  // It had been ended.
      }
    }
  }

  // Not the default stream, which cannot be recorded. A thread with a stream of its own records there: nobody else's
  // work then shares the libraries' workspaces of that stream.
  c10::cuda::CUDAStream stream() {
    c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream(device_.index());
    if (here != c10::cuda::getDefaultCUDAStream(device_.index())) return here;
    // One for all: the allocator and the libraries keep memory for each stream that was ever used.
    static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    auto it = streams.find(device_.index());
    if (it == streams.end()) {
      it = streams.emplace(device_.index(), c10::cuda::getStreamFromPool(false, device_.index())).first;
    }
    return it->second;
  }

  c10::Device device_;
  at::cuda::MempoolId_t pool_;
  bool recorded_ = false;
};

}  // namespace
}  // namespace tritonrl::cuda

extern "C" __attribute__((visibility("default"))) tritonrl::cuda::Graphs* tritonrl_cuda_graphs(int8_t device) {
  return new tritonrl::cuda::TorchGraphs(c10::Device(c10::kCUDA, device));
}
