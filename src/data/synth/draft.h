// SPDX-License-Identifier: Apache-2.0
// Draft: a graph while it is being drawn. Hands out sizes, inputs and parameters, and keeps the values of every node so
// that no operator leaves its domain, overflows its dtype, or makes (nearly) a constant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

constexpr int kSamples = 256;
constexpr int kMaxInputs = 4, kMaxPlainInputs = 3;
constexpr int64_t kLongestRow = 65536;              // One program of a row kernel holds one in registers.
constexpr int64_t kLongestLoop = int64_t{1} << 22;  // Where the solution loops over the row.

// Roles of dimensions: they decide names and sizes.
enum class Role {
  kBatch,
  kRows,
  kColumns,
  kLong,
  kTime,
  kFeatures,
  kChannels,
  kHeight,
  kWidth,
  kHeads,
  kHeadDim,
  kClasses,
  kDepth,  // Of volumes, which are small and have few channels.
  kShortHeight,
  kShortWidth,
  kFewChannels,
  kFewRows,  // Of long ones.
  kLongColumns
};

class Draft {
 public:
  Draft(Type type, bool gpu_sizes, bool plain, Rng rng) : rng(rng), type(type), plain(plain), gpu_(gpu_sizes) {}

  TensorGraph graph;
  Rng rng;
  const Type type;         // Of the floating-point inputs and parameters.
  const bool plain;        // Chains over (M, N): names and operands come in one way only.
  bool long_rows = false;  // Solutions loop over rows that are too long for one program.
  bool layered = false;    // Second operands are the module's own more often than not: one number a channel.

  // A new symbol; sizes differ from those of every other one where they can.
  Dim symbol(Role role);
  // A tensor of forward's arguments. `positive`: within [0.5, 1.5). -1 when there are as many as there may be.
  int input(const Shape& shape, bool positive = false);
  int index_input(const Shape& shape, const Dim& below);  // Whole numbers from 0 to below - 1.
  int unit_input(const Shape& shape);                     // Within [0.05, 0.95): probabilities.
  int sign_input(const Shape& shape);                     // -1 or 1.
  int parameter(const Shape& shape, const std::string& draw, const std::string& member);  // Of a module, or its own.
  // A second operand for a value of this shape: a new input, an earlier node or a parameter. -1 = none to be had.
  int other(const Shape& shape, int not_this, bool positive, bool may_broadcast = true);

  // Adds a compute node after looking at its values; -1 when they are degenerate.
  int compute(Node node, const std::vector<double>& samples, double low, double high, bool exact = false);
  // The next free name for a module: "norm", "norm2" ...
  std::string member(const std::string& base);
  // One of several ways to say the same; the first in plain drafts.
  std::string one_of(const std::vector<std::string>& words) { return plain ? words[0] : rng.pick(words); }

  const Values& values(int node) const { return graph[node].values; }
  const Shape& shape(int node) const { return graph[node].shape; }
  int64_t longest_row(const Operator& op) const;
  int rank(int node) const { return static_cast<int>(graph[node].shape.size()); }
  bool is_float(int node) const { return graph[node].type != Type::kInt64; }
  // May a module with parameters take it? They all have the draft's own dtype.
  bool usable(int node) const { return is_float(node) && graph[node].type == type; }
  std::string type_argument() const { return type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(type)); }
  // Would a kernel that sums `terms` for each element of `shape` take too long, in the interpreter or in memory?
  bool too_much(const Shape& shape, int64_t terms) const;
  // Draws how the node's operator is written; with a module, `constructor` becomes the node's.
  void write(Node& node, const std::string& constructor = "", const std::string& base = "");
  // Takes back what was handed out since `before`, which is this draft at an earlier time.
  void forget_since(const Draft& before);
  // Samples of the product of `count` pairs summed, of x and of values of deviation `deviation`.
  std::vector<double> summed(int x, int64_t count, double deviation);
  // Sample j becomes some other sample: for operators that move values.
  std::vector<double> shuffled(int x);
  bool chance(double p) { return rng.uniform() < p; }
  template <class T>
  T pick(const std::vector<T>& items) {
    return rng.pick(items);
  }

 private:
  int channel_parameter(const Shape& wanted);
  int plain_other(const Shape& shape, int not_this, bool positive, bool may_broadcast);
  int add_input(const Shape& shape, Type type, std::string draw, double (*sample)(Rng&), double low, double high);
  bool gpu_;
  int inputs_ = 0;
  std::map<std::string, int> members_;
};

// Shape rules (draft_rules.cpp, draft_structure.cpp, draft_windows.cpp), named in the tables.
int build_pointwise(Draft& draft, const Operator& op, int x);
int build_cast(Draft& draft, const Operator& op, int x);
int build_row(Draft& draft, const Operator& op, int x);
int build_reduce(Draft& draft, const Operator& op, int x);
int build_loss(Draft& draft, const Operator& op, int x);
int build_class_loss(Draft& draft, const Operator& op, int x);
int build_prelu(Draft& draft, const Operator& op, int x);
int build_layer_norm(Draft& draft, const Operator& op, int x);
int build_group_norm(Draft& draft, const Operator& op, int x);
int build_batch_norm(Draft& draft, const Operator& op, int x);
int build_pool(Draft& draft, const Operator& op, int x);
int build_adaptive_pool(Draft& draft, const Operator& op, int x);
int build_matmul(Draft& draft, const Operator& op, int x);
int build_product(Draft& draft, const Operator& op, int x);  // Of more dimensions, or of transposed operands.
int build_diagonal(Draft& draft, const Operator& op, int x);
int build_linear(Draft& draft, const Operator& op, int x);
int build_attention(Draft& draft, const Operator& op, int x);
int build_conv(Draft& draft, const Operator& op, int x);
int build_dropout(Draft& draft, const Operator& op, int x);
int build_triplet_loss(Draft& draft, const Operator& op, int x);
int build_move(Draft& draft, const Operator& op, int x);  // All of family "movement".

int spatial_dims(const Operator& op);  // 3 of "max_pool3d".

}  // namespace tritonrl::graphs
