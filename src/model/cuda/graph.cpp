// SPDX-License-Identifier: Apache-2.0
#include "model/cuda/graph.h"

#include <cstdlib>
#include <string_view>

#include "model/cuda/module.h"

namespace tritonrl::cuda {
namespace {

void* open_maker() {
  const char* wanted = std::getenv("TRITONRL_CUDA_GRAPHS");
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  return module_symbol("libtritonrl_cuda_graph.so", "tritonrl_cuda_graphs", "generation will be slower");
}

}  // namespace

std::unique_ptr<Graphs> make_graphs(const c10::Device& device) {
  if (device.is_cpu()) return nullptr;
  static const auto make = reinterpret_cast<Graphs* (*)(int8_t)>(open_maker());
  return std::unique_ptr<Graphs>(make ? make(device.index()) : nullptr);
}

}  // namespace tritonrl::cuda
