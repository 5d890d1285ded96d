// SPDX-License-Identifier: Apache-2.0
// Which kernels a graph becomes: the schedule of the code generator.
//
// Every heavy node (row, window, product, convolution) gets a kernel. Pointwise users of its result join it as an
// epilogue while shapes allow; row operators along the same rows join too. Everything else (pointwise operators and
// movement of inputs or of stored results) is computed again wherever it is read, which makes it a prologue. A value is
// stored when another kernel or the caller needs it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/synth/operators.h"
#include "data/synth/tensor_graph.h"

namespace tritonrl::graphs {

// How the elements of a shape are dealt out to rows: along `dims`; or by groups of channels (groups > 0), or one
// channel (groups = 0) of dimension 1.
struct RowSpace {
  Shape shape;
  std::vector<int> dims;
  int64_t groups = -1;
  std::string groups_owner = "";  // The module that says how many groups there are; "" = the number is written out.
  bool operator==(const RowSpace&) const = default;
  std::string groups_text() const {
    return groups_owner.empty() ? std::to_string(groups) : groups_owner + ".num_groups";
  }
  bool whole() const { return dims.size() == shape.size() && groups < 0; }
  Dim length() const;
  Dim rows() const;
  Shape outer() const { return {shape.begin(), shape.begin() + dims.front()}; }
  Shape inner() const { return {shape.begin() + dims.back() + 1, shape.end()}; }
};

// A length that is a product of sizes is looped over sooner: whoever writes the kernel need not compute it.
bool loops_over(const RowSpace& space, int64_t longest_row);

struct KernelPlan {
  enum class Kind { kPointwise, kRow, kWindow, kGemm, kConv };
  Kind kind = Kind::kPointwise;
  int anchor = -1;
  RowSpace space;            // kRow.
  std::vector<int> members;  // Nodes computed here once, in order.
  std::vector<int> stores;   // Members (or, for pointwise kernels, inlined nodes) that are stored.
  std::set<int> needs;       // Kernels that must have run.
};

struct LaunchPlan {
  TensorGraph graph;                // Losses taken apart; what the kernels compute.
  std::vector<KernelPlan> kernels;  // In the order of launches.
  std::vector<int> home;            // By node: the kernel that computes it once, or -1.
  std::vector<bool> stored;         // By node: is in memory (inputs and parameters always are).
  std::vector<int> from;            // By node of `graph`: the node of the given graph, or -1.
  int64_t longest_row = 0;          // Longer ones are looped over, block by block; 0 = none is.

  bool loops(const RowSpace& space) const { return loops_over(space, longest_row); }
};

// Nothing when the graph has an operator without a kernel.
std::optional<LaunchPlan> plan_kernels(const TensorGraph& graph, int64_t longest_row = 0);

// A row operator as reductions and pointwise operators, for long rows (long_rows.cpp): all parts but the last are added
// to `graph`, and -1 for each to `from`. Nothing where it is one reduction already, or cannot be taken apart.
std::optional<Node> long_row_parts(TensorGraph& graph, std::vector<int>& from, const Node& node);

// May an operator be written as a loop over the row; one that sums up, so that several share a kernel; and either that
// or parts that can.
bool loopable(const Operator& op);
bool sums_up(const Operator& op);
bool takes_long_rows(const Operator& op);
// Node::ints of a part that is one number of each row of a grouped space; no tensor of a graph has its shape.
inline const std::string kRowNumber = "row_number";

}  // namespace tritonrl::graphs
