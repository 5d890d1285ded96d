// SPDX-License-Identifier: Apache-2.0
#include "data/graphs/operators.h"

#include <unordered_map>

namespace tritonrl::graphs {

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all = [] {
    std::vector<Operator> out = pointwise_operators();
    for (auto* table : {&row_operators, &structure_operators}) {
      for (Operator& op : (*table)()) out.push_back(std::move(op));
    }
    return out;
  }();
  return all;
}

const Operator* find_operator(const std::string& name) {
  static const std::unordered_map<std::string, const Operator*> by_name = [] {
    std::unordered_map<std::string, const Operator*> out;
    for (const Operator& op : operators()) out.emplace(op.name, &op);
    return out;
  }();
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

}  // namespace tritonrl::graphs
