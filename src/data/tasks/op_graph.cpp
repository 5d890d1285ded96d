// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/op_graph.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {

OpGraph::NodeId OpGraph::add(const std::string& op, std::vector<std::string> attributes, std::vector<NodeId> operands,
                             bool commutative) {
  auto id = static_cast<NodeId>(nodes_.size());
  for (NodeId operand : operands) CHECK(operand >= 0 && operand < id) << op << " uses node " << operand << " of " << id;
  nodes_.push_back({op, std::move(attributes), std::move(operands), commutative});
  return id;
}

std::string OpGraph::hash() const {
  CHECK(output_ >= 0) << "graph without an output";
  size_t count = nodes_.size();
  std::vector<std::string> colours(count);
  for (size_t i = 0; i < count; ++i) {
    bool is_output = static_cast<NodeId>(i) == output_;
    colours[i] = cat(nodes_[i].op, "(", join(nodes_[i].attributes, ","), ")", is_output ? "!" : "");
  }
  // As many rounds as nodes: every node then knows everything it is connected to.
  for (size_t round = 0; round < count; ++round) {
    std::vector<std::vector<std::string>> uses(count);
    std::vector<std::string> next(count);
    for (size_t i = 0; i < count; ++i) {
      const Node& node = nodes_[i];
      std::vector<std::string> operands;
      for (size_t slot = 0; slot < node.operands.size(); ++slot) {
        auto operand = static_cast<size_t>(node.operands[slot]);
        operands.push_back(colours[operand]);
        uses[operand].push_back(cat(node.commutative ? 0 : slot, ":", colours[i]));
      }
      if (node.commutative) std::sort(operands.begin(), operands.end());
      next[i] = cat(colours[i], "[", join(operands, ","), "]");
    }
    for (size_t i = 0; i < count; ++i) {
      std::sort(uses[i].begin(), uses[i].end());
      colours[i] = content_hash(cat(next[i], "<", join(uses[i], ","), ">"));
    }
  }
  std::sort(colours.begin(), colours.end());
  return "graph:" + content_hash(join(colours, "\n"));
}

}  // namespace tritonrl
