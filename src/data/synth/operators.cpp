// SPDX-License-Identifier: Apache-2.0
#include "data/synth/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

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
    static const std::vector<Operator> recorded = recorded_operators();
    for (const auto* table : {&operators(), &recorded}) {
      for (const Operator& op : *table) out.emplace(op.name, &op);
    }
    return out;
  }();
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

OperatorSet select_operators(const std::vector<std::string>& words, const std::string& key) {
  std::vector<std::string> known = {"all", "core"};
  for (const Operator& op : operators()) {
    for (const std::string& word : {op.family, op.name}) {
      if (std::find(known.begin(), known.end(), word) == known.end()) known.push_back(word);
    }
  }
  std::set<std::string> wanted;
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      std::string close = nearest(word, known);
      throw usage_error(cat(key, " does not know '", word, "'"), "",
                        close.empty() ? "give all, core, families or operators (docs/synthesiser.md)"
                                      : cat("did you mean '", close, "'?"));
    }
    wanted.insert(word);
  }
  OperatorSet out;
  for (const Operator& op : operators()) {
    bool taken = wanted.count("all") || (op.core && wanted.count("core")) || wanted.count(op.family);
    if (taken || wanted.count(op.name)) out.push_back(&op);
  }
  return out;
}

std::string python_float(double value) {
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  for (int digits = 1; digits <= 17; ++digits) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    std::string text = replace_all(buffer, "e-0", "e-");
    if (std::strtod(buffer, nullptr) != value || text.find("e+") != std::string::npos) continue;
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  return cat(value);
}

std::string fill_template(std::string text, const std::vector<std::string>& operands,
                          const std::vector<double>& attributes) {
  const char* const names[] = {"{x}", "{y}", "{z}"};
  const char* const values[] = {"{a}", "{b}"};
  CHECK(operands.size() <= 3 && attributes.size() <= 2) << "too much for the template " << text;
  for (size_t i = 0; i < operands.size(); ++i) text = replace_all(text, names[i], operands[i]);
  for (size_t i = 0; i < attributes.size(); ++i) text = replace_all(text, values[i], python_float(attributes[i]));
  return text;
}

}  // namespace tritonrl::graphs
