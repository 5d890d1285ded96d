// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/graph.h"

#include "model/cuda/module.h"

namespace tritonrl::cuda {

std::unique_ptr<Graphs> make_graphs(const c10::Device& device) {
  if (device.is_cpu()) return nullptr;
  static const auto make = reinterpret_cast<Graphs* (*)(int8_t)>(
      symbol_of("libtritonrl_cuda_graph.so", "TRITONRL_CUDA_GRAPHS", "tritonrl_cuda_graphs"));
  return std::unique_ptr<Graphs>(make ? make(device.index()) : nullptr);
}

}  // namespace tritonrl::cuda
