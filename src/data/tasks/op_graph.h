// SPDX-License-Identifier: Apache-2.0
// OpGraph: what a task computes, without how it is written down.
//
// Nodes are operators with attributes; edges are operands. Names, formatting, tensor sizes and the order in which nodes
// were added are not part of it, so its hash is the same for the same computation at other sizes. Splits are disjoint
// by that hash (data/tasks/split.h).
//
// The hash is a colour refinement (Weisfeiler-Leman) over operands and uses: equal graphs always hash alike; unequal
// ones might in theory meet, which only makes splits more careful. Operands of commutative operators are unordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

class OpGraph {
 public:
  using NodeId = int32_t;

  // A tensor handed to forward(). `role` says what kind, never which one: "full", "row", "column", "matrix" ...
  NodeId add_input(const std::string& role) { return add("input", {role}, {}); }
  // A parameter of the module, e.g. role "weight" or "bias".
  NodeId add_parameter(const std::string& role) { return add("parameter", {role}, {}); }
  // An operator. Attributes are spelled out, e.g. {"dim=-1", "keepdim"}. REQUIRES: operands were added before.
  NodeId add(const std::string& op, std::vector<std::string> attributes, std::vector<NodeId> operands,
             bool commutative = false);
  void set_output(NodeId node) { output_ = node; }

  // "graph:" and 32 hex digits. REQUIRES: an output was set.
  std::string hash() const;
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }

 private:
  struct Node {
    std::string op;
    std::vector<std::string> attributes;
    std::vector<NodeId> operands;
    bool commutative = false;
  };
  std::vector<Node> nodes_;
  NodeId output_ = -1;
};

}  // namespace tritonrl
