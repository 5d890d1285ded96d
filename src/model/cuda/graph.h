// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: a fixed sequence of operations, recorded once and started again as one launch.
//
// A decoding step of a small model is some hundred launches that take the host longer than the GPU; recorded, it is
// one. This part needs LibTorch's CUDA libraries to link, so it is a module of its own, opened when a GPU is first
// used. The environment's TRITONRL_CUDA_GRAPHS=0 keeps it closed.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace tritonrl::cuda {

// Recorded work. What it reads and writes must stay where it was.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;  // In the calling thread's stream; returns at once.
};

// Memory for the intermediate values of graphs that never run at the same time: they share it. Thread rule: one thread
// at a time.
class Graphs {
 public:
  virtual ~Graphs() = default;
  // Runs `work` as it is, in the stream in which it will be recorded, so that libraries are ready. Blocks.
  virtual void warm_up(const std::function<void()>& work) = 0;
  // Records what `work` begins on the device, without running it. Other threads may use the device meanwhile (but for
  // recording, and memory that the allocator has cached is not given back for them). Throws where it cannot be
  // recorded.
  virtual std::unique_ptr<Graph> record(const std::function<void()>& work) = 0;
};

// Null on the CPU, and where the module was not built, cannot be opened or is switched off.
std::unique_ptr<Graphs> make_graphs(const c10::Device& device);

}  // namespace tritonrl::cuda
