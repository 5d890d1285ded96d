// SPDX-License-Identifier: Apache-2.0
#include "data/synth/coverage.h"

#include <algorithm>

#include "base/text.h"
#include "data/python_source.h"
#include "data/synth/draw.h"
#include "data/synth/launch_plan.h"
#include "data/synth/torch_writer.h"
#include "data/tasks/task_facts.h"

namespace tritonrl::graphs {

namespace {

constexpr uint64_t kDraws = 200;
constexpr int kGraphs = 16;        // Of one operator: so many ways of writing it are looked at.
constexpr size_t kNamedTasks = 6;  // Ids printed for a missing operator.

// Other names of what the stream writes as a sign, or under its usual name.
const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> names = {
      {"add", "+"},       {"sub", "-"},       {"subtract", "-"},   {"mul", "*"},     {"multiply", "*"},
      {"div", "/"},       {"divide", "/"},    {"truedivide", "/"}, {"mm", "matmul"}, {"pow", "**"},
      {"neg", "unary -"}, {"t", "transpose"}, {"negative", "neg"}};
  return names;
}

// Nothing of a graph: containers, constants, copies, and arithmetic of sizes.
bool is_nothing(const std::string& key) {
  static const std::set<std::string> names = {"sequential", "modulelist", "moduledict", "parameter",  "identity",
                                              "size",       "clone",      "detach",     "contiguous", "tensor",
                                              "zeros",      "ones",       "zeroslike",  "oneslike",   "append",
                                              "extend",     "item",       "//",         "%"};
  return names.count(key) > 0;
}

// Names in sources that apply `op` alone, or behind another operator where it computes nothing by itself.
void add_names(const Operator& op, std::set<std::string>& names) {
  const Operator* first = find_operator("relu");
  for (int64_t nodes : {1, 2}) {
    OperatorSet from = {&op};
    if (nodes == 2) from.push_back(first);
    int graphs = 0;
    for (uint64_t i = 0; i < kDraws && graphs < kGraphs; ++i) {
      DrawConfig config;
      config.nodes = nodes;
      config.operators = &from;
      auto graph = draw_graph(config, Rng(17).at(i));
      bool has = graph && std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                      [&](const Node& node) { return node.op == &op; });
      if (!has || !plan_kernels(*graph)) continue;
      ++graphs;
      Naming naming = name_everything(*graph, false, Rng(18).at(i));
      for (const std::string& name : library_operators(torch_source(*graph, naming, Rng(19).at(i)))) {
        names.insert(operator_key(name));
      }
    }
    if (graphs > 0) return;
  }
}

}  // namespace

const std::set<std::string>& solved_operators() {
  static const std::set<std::string> all = [] {
    std::set<std::string> names;
    for (const Operator& op : operators()) {
      if (op.work == Work::kOther) continue;
      if (op.weight == 0) names.insert(operator_key(op.name));  // Begins graphs, is never drawn.
      if (op.build != nullptr) add_names(op, names);
    }
    return names;
  }();
  return all;
}

OperatorCoverage operator_coverage(const std::vector<Task>& tasks) {
  const std::set<std::string>& known = solved_operators();
  OperatorCoverage out;
  for (const Task& task : tasks) {
    std::set<std::string> missing;
    for (const std::string& name : library_operators(task.source)) {
      std::string key = operator_key(name);
      auto other = other_names().find(key);
      bool there = known.count(key) > 0 || (other != other_names().end() && known.count(other->second) > 0);
      if (!there && !is_nothing(key)) missing.insert(key);
    }
    OperatorCoverage::Level& level = out.levels[task.level];
    ++level.tasks;
    level.covered += missing.empty();
    for (const std::string& key : missing) out.missing[key].push_back(task.id);
  }
  return out;
}

std::string to_text(const OperatorCoverage& coverage) {
  std::string text;
  for (const auto& [level, counts] : coverage.levels) {
    text += cat("level ", level, ": ", counts.covered, " of ", counts.tasks,
                " references have every operator in the table with a solution\n");
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> missing(coverage.missing.begin(),
                                                                        coverage.missing.end());
  std::stable_sort(missing.begin(), missing.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  if (!missing.empty()) text += "missing, by number of tasks:\n";
  for (const auto& [name, ids] : missing) {
    std::vector<std::string> shown(ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(kNamedTasks, std::ssize(ids)));
    text += cat("  ", ids.size(), "  ", name, "  ", join(shown, " "), ids.size() > shown.size() ? " ..." : "", "\n");
  }
  return text;
}

}  // namespace tritonrl::graphs
