// SPDX-License-Identifier: Apache-2.0
// libtritonrl_cuda_graph.so: model/cuda/graph.h on LibTorch's CUDA graphs.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

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

  std::unique_ptr<Graph> record(const std::function<void()>& work) override {
    c10::InferenceMode no_autograd;
    auto out = std::make_unique<TorchGraph>();
    c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    c10::cuda::CUDAStreamGuard guard(stream());
    out->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        out->graph.capture_end();
      } catch (const std::exception&) {  // Nothing new: what broke is on its way already.
      }
      throw;
    }
    out->graph.capture_end();
    return out;
  }

 private:
  // Not the default stream, which cannot be recorded. A thread with a stream of its own records there: nobody else's
  // work then shares the libraries' workspaces of that stream.
  c10::cuda::CUDAStream stream() {
    c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream(device_.index());
    if (here != c10::cuda::getDefaultCUDAStream(device_.index())) return here;
    if (!own_) own_ = c10::cuda::getStreamFromPool(false, device_.index());
    return *own_;
  }

  c10::Device device_;
  at::cuda::MempoolId_t pool_;
  std::optional<c10::cuda::CUDAStream> own_;
};

}  // namespace
}  // namespace tritonrl::cuda

extern "C" __attribute__((visibility("default"))) tritonrl::cuda::Graphs* tritonrl_cuda_graphs(int8_t device) {
  return new tritonrl::cuda::TorchGraphs(c10::Device(c10::kCUDA, device));
}
