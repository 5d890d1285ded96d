// SPDX-License-Identifier: Apache-2.0
// The PyTorch side of a graph: the task's source, and what the solution's module shares with it. Two writers: bare and
// plain ones write what is needed and no more (torch_writer.cpp); the other writes as people do (people_writer.cpp).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "data/synth/tensor_graph.h"
#include "data/synth/writing.h"

namespace tritonrl::graphs {

// An argument of __init__: a size, or a number, tuple or truth value as it stands in Python.
struct Argument {
  std::string name;
  Dim dim;
  std::string literal = "";  // "" = a size.
  std::string type = "int";
  std::string preset = "";  // Its default value in the signature, "" = none.
};

// Names that source and solution have in common.
struct Naming {
  bool plain = false;                   // Every result is called x; the first argument, where it is read again, `r`.
  std::vector<std::string> values;      // By node: Python name in forward(); parameters: "self.norm.weight".
  std::vector<int> inputs;              // Nodes, in the order of forward's arguments.
  std::vector<std::string> parameters;  // All arguments of forward(), where some are no tensors; else empty.
  std::vector<Argument> arguments;      // Of __init__; those with a default value last.
  std::string constructor;              // Text of __init__ and a blank line, or "".
  std::vector<std::string> imports;     // Of the solution, besides torch, torch.nn and triton.

  // --- As people write; empty otherwise.
  std::vector<std::string> forms;  // By node: its template in forward(); "" = written by the container it is in.
  // By node and place holder ("a", "dim"): the argument that holds the number.
  std::map<std::pair<int, std::string>, std::string> scalars;
  std::vector<std::string> members;         // By node: what {self} is, "net" for a layer at the end of self.net.
  std::vector<std::string> modules;         // By node: the constructor of its module, "" = none.
  std::vector<std::string> owners;          // By node: where the solution, too, has that module: "self.conv", or "".
  std::vector<std::string> state;           // Lines of __init__ that make parameters: also the solution's.
  std::vector<std::string> rest;            // Lines of __init__ that make nothing with a state.
  std::string classes;                      // Helper classes of the source.
  std::string new_classes;                  // Of the solution: they only hold parameters.
  bool wraps = false;                       // A long list of arguments goes on in a second line.
  size_t given = 0;                         // The first arguments, which get_init_inputs() gives.
  std::string signature(bool hints) const;  // "self, in_features, bias=True".
};

Naming name_everything(const TensorGraph& graph, bool plain, Rng rng);

// The same as people write: operators in one of their forms, numbers as arguments, modules in containers. `graph` has
// its sizes named.
Naming name_as_people(const TensorGraph& graph, const Writing& writing, Rng rng);

// Does a node behind the first one read the first argument?
bool keeps_first_input(const TensorGraph& graph);

// The whole module: imports, constants, Model, get_inputs, get_init_inputs.
std::string torch_source(const TensorGraph& graph, const Naming& naming, Rng rng);
std::string people_source(const TensorGraph& graph, const Naming& naming, const Writing& writing, Rng rng);
// __init__ of the solution and a blank line, or "". `body`: its forward(), which says what must be kept.
std::string people_constructor(const Naming& naming, const Writing& writing, const std::string& body);

// --- Of both writers.
using Named = std::map<std::string, std::string>;  // Place holders that are names: {"a", "self.slope"}.
// Of Named: dimensions are counted from the front, not the last one as -1; several are a list, not a tuple.
inline const std::string kFromFront = "from front", kListedDims = "listed dims";
Named written(const Writing& writing);
// A template over operand texts; `named` goes before the node's own numbers.
std::string torch_expression(const TensorGraph& graph, const Node& node, std::string text,
                             const std::vector<std::string>& operands, const Named& named = {});
bool is_call(const std::string& torch);  // A template that needs no parentheses as an operand.
size_t count_of(const std::string& text, const std::string& part);
std::string lower_case(std::string text);

}  // namespace tritonrl::graphs
