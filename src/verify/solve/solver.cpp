// SPDX-License-Identifier: Apache-2.0
#include "verify/solve/solver.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/module_frame.h"
#include "data/synth/operators.h"
#include "data/synth/triton_writer.h"
#include "verify/solve/recorded_graph.h"
#include "verify/variants.h"

namespace tritonrl {

namespace {

constexpr size_t kMostRecordings = 12;  // Of one reference, tens of milliseconds each.

// "layers.0.weight" -> "self.layers[0].weight".
std::string member_path(const std::string& name) {
  std::string out = "self";
  for (const std::string& part : split(name, '.')) {
    bool index = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += index ? "[" + part + "]" : "." + part;
  }
  return out;
}

graphs::Naming name_nodes(const RecordedGraph& recorded, const ModuleFrame& frame) {
  graphs::Naming naming;
  std::set<std::string> taken = {"torch", "nn", "F", "triton", "tl", "self", "grid", "partial", "blocks"};
  taken.insert(frame.arguments.begin(), frame.arguments.end());
  for (const auto& [name, dim] : recorded.graph.symbols) taken.insert(name);
  naming.values.resize(recorded.graph.nodes.size());
  for (size_t i = 0; i < recorded.inputs.size(); ++i) {
    if (recorded.inputs[i] < 0) continue;
    naming.values[static_cast<size_t>(recorded.inputs[i])] = frame.arguments[i];
    naming.inputs.push_back(recorded.inputs[i]);
  }
  naming.parameters = frame.arguments;
  for (size_t i = 0; i < recorded.graph.nodes.size(); ++i) {
    const graphs::Node& node = recorded.graph.nodes[i];
    std::string& name = naming.values[i];
    if (node.kind == graphs::Node::Kind::kParameter) name = member_path(recorded.parameters.at(static_cast<int>(i)));
    if (node.kind != graphs::Node::Kind::kCompute) continue;
    for (const auto& [argument, number] : recorded.numbers) {  // A number that forward() was given.
      for (size_t n = 0; n < node.numbers.size() && n < 2; ++n) {
        if (node.numbers[n] == number) naming.scalars[{static_cast<int>(i), n ? "b" : "a"}] = frame.arguments[argument];
      }
    }
    name = node.op->name + "_out";
    for (int n = 2; !taken.insert(name).second; ++n) name = cat(node.op->name, "_out", n);
  }
  naming.constructor = frame.methods;
  naming.new_classes = frame.definitions;
  naming.imports = frame.imports;
  return naming;
}

// The symbols that an argument is called like step aside.
void rename_symbols(graphs::TensorGraph& graph, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    auto it = graph.symbols.find(argument);
    if (it == graph.symbols.end()) continue;
    graphs::Dim dim = it->second;
    graph.symbols.erase(it);
    std::string name = argument + "_size";
    dim.text = name;
    graph.symbols[name] = dim;
    auto rename = [&](graphs::Shape& shape) {
      for (graphs::Dim& each : shape) each.text = graphs::replace_word(each.text, argument, name);
    };
    for (graphs::Node& node : graph.nodes) {
      rename(node.shape);
      rename(node.module_dims);
    }
  }
}

Proposal none(std::string kind, std::string problem, std::string graph = "") {
  return {"", std::move(kind), std::move(problem), std::move(graph)};
}

}  // namespace

Proposal propose_solution(Verifier& verifier, const Task& task) {
  Sizes tiny = task.tiny, larger = task.larger;
  if (tiny.empty() && larger.empty()) {
    Variants found = find_variants(verifier, task);
    if (!found.failure.empty()) return none("unrecordable", found.failure);
    if (found.source == task.source) tiny = found.tiny, larger = found.larger;
  }
  std::vector<CaseSpec> cases = {{"full"}};
  for (const auto& [name, sizes] : {std::pair("tiny", &tiny), std::pair("larger", &larger)}) {
    if (sizes->empty()) continue;
    CaseSpec spec{name, *sizes};
    spec.additional = true;
    cases.push_back(spec);
  }
  // Sizes that are alike by chance are told apart where one of them can be doubled alone.
  Task named = task;
  named.source = name_sizes(task.source);
  for (const auto& [name, size] : size_constants(named.source)) {
    if (cases.size() > kMostRecordings) break;
    CaseSpec spec{"double_" + name, {{name, 2 * size}}};
    spec.additional = true;
    cases.push_back(spec);
  }
  auto reference = verifier.record(named, cases);
  if (!reference->failure.empty()) return none("unrecordable", reference->failure);
  RecordedGraph recorded = read_graph(reference->file);
  if (!recorded.kind.empty()) return none(recorded.kind, recorded.problem);
  std::string hash = recorded.graph.hash();
  ModuleFrame frame = module_frame(task.source);
  if (!frame.problem.empty()) return none("constructor", frame.problem, hash);
  bool tensors = std::any_of(recorded.inputs.begin(), recorded.inputs.end(), [](int node) { return node >= 0; });
  if (!tensors || frame.arguments.size() < recorded.inputs.size()) {
    return none("inputs", "forward() has other arguments than get_inputs() gives", hash);
  }
  frame.arguments.resize(recorded.inputs.size());
  rename_symbols(recorded.graph, frame.arguments);
  graphs::Style style;
  style.implicit_gemm = style.keyword_other = style.explicit_cast = true;
  style.pass_scalars = true;
  style.names = 1;
  style.tile = style.conv_columns = 64;
  style.conv_depth = 32;
  style.longest_row = 8192;
  Proposal out;
  out.graph = hash;
  out.solution = graphs::triton_solution(recorded.graph, name_nodes(recorded, frame), style);
  if (out.solution.empty()) return none("plan", "an operator without a kernel", hash);
  return out;
}

}  // namespace tritonrl
