// SPDX-License-Identifier: Apache-2.0
// Prose: docstrings and comments of a task's module, from a small grammar over the graph's operators and shapes.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "data/synth/writing.h"

namespace tritonrl::graphs {

// What a docstring says of one argument or result.
struct Described {
  std::string name, type, text;
};

// "layer normalization"; any operator has a phrase.
std::string phrase_of(const Node& node, Rng& rng);
// A comment's words on one step: "apply the layer normalization".
std::string step_text(const Node& node, Rng& rng);
// "(batch_size, dim)"; dimensions that are computed become words.
std::string shape_words(const Shape& shape);

std::string class_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng);
std::string init_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng);
std::string forward_sentence(const TensorGraph& graph, Writing::Docs docs, Rng& rng);
// `preset`: its default value, "" = none.
Described describe_argument(const std::string& name, const std::string& type, const std::string& preset, Rng& rng);
Described describe_input(const std::string& name, const Node& node, Writing::Docs docs, Rng& rng);
std::string describe_output(const TensorGraph& graph, Writing::Docs docs, Rng& rng);

// A docstring's lines at this depth, quotes included.
std::string docstring(const std::string& sentence, const std::vector<Described>& arguments, const std::string& returns,
                      Writing::Layout layout, int depth);

}  // namespace tritonrl::graphs
