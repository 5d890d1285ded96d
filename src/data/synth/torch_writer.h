// SPDX-License-Identifier: Apache-2.0
// The PyTorch side of a graph: the task's source, and what the solution's module shares with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/synth/tensor_graph.h"

namespace tritonrl::graphs {

// Names that source and solution have in common.
struct Naming {
  bool plain = false;               // Every result is called x; the first argument, where it is read again, `r`.
  std::vector<std::string> values;  // By node: Python name in forward(); parameters: "self.norm.weight".
  std::vector<int> inputs;          // Nodes, in the order of forward's arguments.
  std::vector<std::pair<std::string, Dim>> arguments;  // Of __init__, with what get_init_inputs() gives.
  std::string constructor;                             // Text of __init__ and a blank line, or "".
};

Naming name_everything(const TensorGraph& graph, bool plain, Rng rng);

// Does a node behind the first one read the first argument?
bool keeps_first_input(const TensorGraph& graph);

// The whole module: imports, constants, Model, get_inputs, get_init_inputs.
std::string torch_source(const TensorGraph& graph, const Naming& naming, Rng rng);

}  // namespace tritonrl::graphs
