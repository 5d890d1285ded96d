// SPDX-License-Identifier: Apache-2.0
// Draws whole graphs: random DAGs grown one operator at a time, the named fusions everyone writes kernels for, layers
// with what follows them in networks, and plain chains over one (M, N) tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

struct DrawConfig {
  int64_t nodes = 1;  // Compute nodes wanted; a named fusion may end with more.
  Type type = Type::kFloat32;
  bool gpu_sizes = false;
  bool fusion = false;  // Begin with a named fusion.
  bool layer = false;   // Begin with a layer (convolution, linear); what follows is what networks do with its result.
  bool plain = false;   // A chain over (M, N): each operator works on the value before, one kernel does them all.
  // Of one node: first the operator by its weight among layers, then inputs that it takes. Otherwise inputs come first,
  // and operators that few inputs suit are rare.
  bool by_weight = false;
  bool long_rows = false;                  // Solutions loop over long rows: they may be drawn.
  const OperatorSet* operators = nullptr;  // To draw from; null = all of them.
};

// Names of the fusions: "conv_bn_relu", "attention" ...
const std::vector<std::string>& fusion_names();

// A fusion by name, and its first nodes; -1 when they cannot be applied.
struct Fusion {
  const char* name;
  int (*build)(Draft&);
  bool of_long_rows = false;  // Drawn where long rows are.
};
const std::vector<Fusion>& fusions();

// Inputs by what they stand for: rows (batch, features), tokens (batch, time, features), signals, images, volumes.
int rows_input(Draft& d);
int tokens_input(Draft& d);
int signal_input(Draft& d);
int image_input(Draft& d);
int volume_input(Draft& d, bool positive = false);
// An operator by its name, which there must be; applied to x with what it draws; x times y. -1 when it cannot be.
const Operator& must(const char* name);
int apply(Draft& draft, const char* name, int x);
// x times an activation of it.
int gated(Draft& draft, int x);
int matmul_of(Draft& d, int x, int y, bool transposed);

// One draw; nothing when it came to a dead end: draw again with the next state of `rng`.
std::optional<TensorGraph> draw_graph(const DrawConfig& config, Rng rng);

}  // namespace tritonrl::graphs
