// SPDX-License-Identifier: Apache-2.0
// Sources as people write them.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/synth/operators.h"
#include "data/synth/prose.h"
#include "data/synth/torch_writer.h"

namespace tritonrl::graphs {

namespace {

using Words = std::vector<std::string>;

// The text of forward(), whatever it is called with.
class Forward {
 public:
  Forward(const TensorGraph& graph, const Naming& naming, const Writing& writing, Rng& rng)
      : graph_(graph), naming_(naming), writing_(writing), rng_(rng), texts_(naming.values) {
    one_name_ = writing.one_name && graph.outputs.size() == 1;
    held_ = naming.inputs[0];
    consumed_.resize(graph.nodes.size(), true);
  }

  std::string run() {
    const std::string first = naming_.values[static_cast<size_t>(naming_.inputs[0])];
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const int id = static_cast<int>(i);
      if (node.kind != Node::Kind::kCompute || naming_.forms[i].empty()) continue;
      std::string text = expression(id);
      if (inlined(id, text)) continue;
      for (int operand : node.operands) consume(operand);
      text = with_own_line(node, std::move(text));
      bool last = graph_.outputs.size() == 1 && graph_.outputs[0] == id;
      if (last && (!one_name_ || rng_.uniform() < 0.4)) {
        line(node, "return " + text);
        return body_;
      }
      if (one_name_ && may_take_over(id)) {
        if (needed_behind(held_, id)) keep(first);
        texts_[i] = first;
        held_ = id;
      }
      line(node, cat(texts_[i], " = ", text));
    }
    Words names;
    for (int output : graph_.outputs) names.push_back(texts_[static_cast<size_t>(source(output))]);
    return body_ + cat("        return ", join(names, ", "), "\n");
  }

 private:
  // The node whose value `id` is written as: modules inside a container stand for what goes into it.
  int source(int id) const {
    while (graph_[id].kind == Node::Kind::kCompute && naming_.forms[static_cast<size_t>(id)].empty())
      id = graph_[id].operands[0];
    return id;
  }

  bool reads(int id, int value) const {
    return std::any_of(graph_[id].operands.begin(), graph_[id].operands.end(), [&](int operand) {
      int from = source(operand);
      bool inside = graph_[from].kind == Node::Kind::kCompute && inline_.count(from) > 0;
      return from == value || (inside && reads(from, value));
    });
  }

  bool needed_behind(int value, int id) const {
    for (int later = id + 1; later < static_cast<int>(graph_.nodes.size()); ++later) {
      const Node& node = graph_[later];
      if (node.kind == Node::Kind::kCompute && !naming_.forms[static_cast<size_t>(later)].empty() &&
          reads(later, value))
        return true;
    }
    return false;
  }

  void consume(int operand) {
    int from = source(operand);
    if (graph_[from].kind != Node::Kind::kCompute || !inline_.count(from)) return;
    consumed_[static_cast<size_t>(from)] = true;
    for (int each : graph_[from].operands) consume(each);
  }

  // May the result have the name of the running value? It is computed from that, and no expression that is still to be
  // written reads it.
  bool may_take_over(int id) const {
    if (std::find(consumed_.begin(), consumed_.end(), false) != consumed_.end()) return false;
    return reads(id, held_);
  }

  void keep(const std::string& running) {
    static const Words kKept = {"identity", "x_in", "original", "skip", "saved", "residual", "original_x", "shortcut"};
    static const Words kCopies = {"", "", "", ".clone()", ".clone().detach()", ".clone().detach()"};
    std::string name = rng_.pick(kKept);
    while (std::find(texts_.begin(), texts_.end(), name) != texts_.end() || graph_.symbols.count(name)) name += "_";
    body_ += cat("        ", name, " = ", running, rng_.pick(kCopies), "\n");
    texts_[static_cast<size_t>(held_)] = name;
  }

  // "let norm = A in x / {own}": A is a line of its own, called norm.
  std::string with_own_line(const Node& node, std::string text) {
    if (text.rfind("let ", 0) != 0) return text;
    size_t equals = text.find(" = "), in = text.find(" in ");
    const std::string wanted = text.substr(4, equals - 4);
    std::string name = wanted;
    while (std::find(texts_.begin(), texts_.end(), name) != texts_.end() || graph_.symbols.count(name)) name += "_";
    line(node, cat(name, text.substr(equals, in - equals)));
    return replace_all(text.substr(in + 4), "{own}", name);
  }

  std::string expression(int id) const {
    const Node& node = graph_[id];
    Words operands;
    for (int operand : node.operands) operands.push_back(texts_[static_cast<size_t>(source(operand))]);
    Named named = written(writing_);
    if (!naming_.members[static_cast<size_t>(id)].empty())
      named["self"] = "self." + naming_.members[static_cast<size_t>(id)];
    for (const auto& [place, name] : naming_.scalars) {
      if (place.first == id) named[place.second] = "self." + name;
    }
    return torch_expression(graph_, node, naming_.forms[static_cast<size_t>(id)], operands, named);
  }

  bool inlined(int id, const std::string& text) {
    auto users = graph_.users(id);
    if ((!writing_.nested && !writing_.one_line) || users.size() != 1 || graph_.is_output(id)) return false;
    const Node& user = graph_[users[0]];
    const std::string& form = naming_.forms[static_cast<size_t>(users[0])];
    size_t slot =
        static_cast<size_t>(std::find(user.operands.begin(), user.operands.end(), id) - user.operands.begin());
    std::string key = cat("{", "xyz"[std::min<size_t>(slot, 2)], "}");
    bool twice = std::count(user.operands.begin(), user.operands.end(), id) > 1;
    bool call = is_call(naming_.forms[static_cast<size_t>(id)]);
    if (twice || count_of(form, key) != 1 || text.size() > (writing_.one_line ? 90u : 50u)) return false;
    if (!call && !writing_.one_line) return false;
    if (text.rfind("let ", 0) == 0) return false;
    texts_[static_cast<size_t>(id)] = call ? text : "(" + text + ")";
    inline_.insert(id);
    consumed_[static_cast<size_t>(id)] = false;
    return true;
  }

  void line(const Node& node, const std::string& text) {
    bool speak = writing_.comments != Writing::Comments::kNone && rng_.uniform() < 0.8;
    std::string words = !speak                  ? ""
                        : rng_.uniform() < 0.75 ? step_text(node, rng_)
                        : node.shape.empty()    ? "scalar"
                                                : shape_words(node.shape);
    if (speak && writing_.comments == Writing::Comments::kAbove) body_ += cat("        # ", words, "\n");
    bool behind = speak && writing_.comments == Writing::Comments::kBehind;
    body_ += cat("        ", text, behind ? "  # " + words : "", "\n");
  }

  const TensorGraph& graph_;
  const Naming& naming_;
  const Writing& writing_;
  Rng& rng_;
  std::vector<std::string> texts_;
  bool one_name_ = false;
  int held_ = 0;                // The node whose value the first argument's name stands for.
  std::set<int> inline_;        // Nodes that are written inside others.
  std::vector<bool> consumed_;  // By node: no line that holds its text is still to come.
  std::string body_;
};

// Is the argument kept on self and read in `body`?
bool is_read(const Naming& naming, const Argument& argument, const std::string& body) {
  bool scalar = std::any_of(naming.scalars.begin(), naming.scalars.end(),
                            [&](const auto& place) { return place.second == argument.name; });
  return scalar && replace_word(body, "self." + argument.name, "").size() != body.size();
}

std::string super_line(bool named, const std::string& type) {
  return cat("        super(", named ? type + ", self" : "", ").__init__()\n");
}

std::string literal_sizes(const TensorGraph& graph, std::string text, const std::string& but = "") {
  for (const auto& [name, dim] : graph.symbols) {
    if (name != but) text = replace_word(text, name, cat(dim.full));
  }
  return text;
}

// A line of the module's constants: "height, width = 32, 32".
struct Constant {
  Words names;
  std::string value;
};

// The symbols of a graph: those of its inputs, then those of its weights.
std::vector<Constant> size_constants(const TensorGraph& graph, const Writing& writing) {
  std::vector<Constant> out;
  const Words together = writing.spatial_line ? spatial_symbols(graph) : Words{};
  for (const std::string& name : symbols_in_order(graph)) {
    if (!together.empty() && name == together[0]) {
      Words values;
      for (const std::string& each : together) values.push_back(cat(graph.symbols.at(each).full));
      out.push_back({together, join(values, ", ")});
    } else if (std::find(together.begin(), together.end(), name) == together.end()) {
      out.push_back({{name}, cat(graph.symbols.at(name).full)});
    }
  }
  return out;
}

std::string lines_of(const std::vector<Constant>& constants) {
  std::string out;
  for (const Constant& constant : constants) out += cat(join(constant.names, ", "), " = ", constant.value, "\n");
  return out;
}

// Where a constant stands says nothing about the module. Three orders: sizes, then numbers; what __init__ takes in its
// order, with the other sizes somewhere in it ("batch_size, in_channels, out_channels, height, width, kernel_size");
// any (but where written conventionally). A value follows what it is made of.
std::vector<Constant> in_order(const std::vector<Constant>& sizes, const std::vector<Constant>& numbers,
                               const Naming& naming, bool conventional, Rng& rng) {
  std::vector<Constant> all = sizes;
  all.insert(all.end(), numbers.begin(), numbers.end());
  double kind = rng.uniform();
  if (conventional) kind = 0.4 + 0.6 * kind;
  if (kind < 0.2 || all.size() < 2) return all;
  if (kind < 0.4) {
    rng.shuffle(all);
  } else {
    auto defines = [](const Constant& constant, const std::string& name) {
      return std::find(constant.names.begin(), constant.names.end(), name) != constant.names.end();
    };
    std::vector<Constant> taken;
    for (const Argument& argument : naming.arguments) {
      const std::string name = argument.literal.empty() ? shape_text({argument.dim}) : argument.name;
      auto at = std::find_if(all.begin(), all.end(), [&](const Constant& each) { return defines(each, name); });
      if (at == all.end()) continue;
      taken.push_back(std::move(*at));
      all.erase(at);
    }
    // The batch comes first; what else an input has comes behind the arguments' sizes, or behind any of the arguments.
    const auto own_sizes = std::count_if(taken.begin(), taken.end(), [&](const Constant& each) {
      return std::any_of(sizes.begin(), sizes.end(), [&](const Constant& size) { return size.names == each.names; });
    });
    const auto place = taken.begin() + (kind < 0.75 ? own_sizes : rng.below(static_cast<int64_t>(taken.size()) + 1));
    all.insert(all.begin() + (all.empty() ? 0 : 1), taken.begin(), place);
    all.insert(all.end(), place, taken.end());
  }
  std::vector<Constant> out;
  while (!all.empty()) {
    auto ready = std::find_if(all.begin(), all.end(), [&](const Constant& each) {
      return std::none_of(all.begin(), all.end(), [&](const Constant& other) {
        return std::any_of(other.names.begin(), other.names.end(),
                           [&](const std::string& name) { return replace_word(each.value, name, "") != each.value; });
      });
    });
    CHECK(ready != all.end());
    out.push_back(std::move(*ready));
    all.erase(ready);
  }
  return out;
}

// What get_init_inputs() returns: the arguments from number `first` on by name, the others in their order.
std::string init_arguments(const Naming& naming, const Words& given, size_t first) {
  Words positional(given.begin(), given.begin() + static_cast<int64_t>(first)), named;
  for (size_t i = first; i < given.size(); ++i) named.push_back(cat('"', naming.arguments[i].name, "\": ", given[i]));
  std::string list = cat("[", join(positional, ", "), "]");
  return named.empty() ? list : cat("[", list, ", {", join(named, ", "), "}]");
}

}  // namespace

std::string people_constructor(const Naming& naming, const Writing& writing, const std::string& body) {
  std::string state, kept;
  for (const std::string& line : naming.state) state += cat("        ", line, "\n");
  for (const Argument& argument : naming.arguments) {
    const std::string own = cat("self.", argument.name, " = "), read = replace_all(state, argument.name + "=", "_=");
    bool passed_on = replace_word(read, argument.name, "").size() != read.size();
    bool member = state.find(own) != std::string::npos;
    if ((!passed_on && !member) || is_read(naming, argument, body)) kept += cat("        ", own, argument.name, "\n");
  }
  kept = writing.numbers_last ? state + kept : kept + state;
  if (kept.empty() && naming.arguments.empty() && !writing.new_empty_init) return "";
  return cat("    def __init__(", naming.signature(writing.hints), "):\n",
             super_line(writing.new_named_super, "ModelNew"), kept, "\n");
}

std::string people_source(const TensorGraph& graph, const Naming& naming, const Writing& writing, Rng rng) {
  auto flag = [&](double p) { return rng.uniform() < p; };
  std::string gap = writing.wide ? "\n\n" : "\n", tensor = writing.tensor_imported ? "Tensor" : "torch.Tensor";
  // --- forward().
  std::string body = Forward(graph, naming, writing, rng).run();
  Words formal = {"self"};
  std::vector<Described> inputs;
  for (int input : naming.inputs) {
    const std::string& name = naming.values[static_cast<size_t>(input)];
    formal.push_back(name + (writing.hints ? ": " + tensor : ""));
    inputs.push_back(describe_input(name, graph[input], writing.docs, rng));
  }
  std::string returned = !writing.hints ? "" : graph.outputs.size() > 1 ? " -> tuple" : " -> " + tensor;
  std::string forward = cat("    def forward(", join(formal, ", "), ")", returned, ":\n");
  if (writing.forward_doc) {
    bool brief = flag(0.1);
    forward += docstring(forward_sentence(graph, writing.docs, rng), brief ? std::vector<Described>{} : inputs,
                         brief ? "" : describe_output(graph, writing.docs, rng), writing.layout, 2);
  }
  forward += body;
  // --- __init__.
  Words given;
  std::vector<Described> described;
  std::string kept;
  std::vector<Constant> sizes = size_constants(graph, writing), numbers;
  std::set<std::string> constant_names;
  for (const Constant& size : sizes) constant_names.insert(size.names.begin(), size.names.end());
  for (size_t i = 0; i < naming.arguments.size(); ++i) {
    const Argument& argument = naming.arguments[i];
    if (i >= naming.given) {  // Left to its default value.
    } else if (argument.literal.empty()) {
      given.push_back(shape_text({argument.dim}));
    } else if (writing.scalars_named && argument.literal != "None" && constant_names.insert(argument.name).second) {
      numbers.push_back({{argument.name}, argument.literal});
      given.push_back(argument.name);
    } else {
      given.push_back(argument.literal);
    }
    described.push_back(describe_argument(argument.name, argument.type, argument.preset, rng));
    if (is_read(naming, argument, body)) kept += cat("        self.", argument.name, " = ", argument.name, "\n");
  }
  std::string layers;
  for (const std::string& line : naming.state) layers += cat("        ", line, "\n");
  for (const std::string& line : naming.rest) layers += cat("        ", line, "\n");
  kept = writing.numbers_last ? layers + kept : kept + layers;
  std::string init;
  if (!kept.empty() || !naming.arguments.empty() || writing.empty_init) {
    init = cat("    def __init__(", naming.signature(writing.hints), "):\n");
    if (writing.init_doc) init += docstring(init_sentence(graph, writing.docs, rng), described, "", writing.layout, 2);
    init += super_line(writing.named_super, "Model") + kept + "\n";
  }
  // --- The rest of the file.
  std::string text = cat(forward, init);
  bool functional = text.find("F.") != std::string::npos && !writing.long_functional;
  auto spelled = [&](std::string code) {
    return writing.long_functional ? replace_word(code, "F", "torch.nn.functional") : code;
  };
  std::string nn = writing.nn_from ? "from torch import nn\n" : "import torch.nn as nn\n", torch = "import torch\n";
  std::string out = writing.nn_first ? nn + torch : torch + nn;
  if (functional || writing.spare_functional) out += "import torch.nn.functional as F\n";
  if (writing.tensor_imported) out += "from torch import Tensor\n";
  static const Words kHeadings = {"# Sizes", "# Problem size", "# configuration", "# Shapes of the inputs",
                                  "# Settings"};
  bool tuple = writing.sizes == Writing::Sizes::kTuple, literal = tuple || writing.sizes == Writing::Sizes::kLiteral;
  std::string constants = literal ? literal_sizes(graph, lines_of(numbers))
                                  : lines_of(in_order(sizes, numbers, naming, writing.conventional, rng));
  const Shape& shape = graph[naming.inputs[0]].shape;
  tuple = tuple && shape.size() >= 2 && shape[0].text != shape[1].text && graph.symbols.count(shape[0].text);
  const std::string sizes_behind = tuple ? shape_text({shape.begin() + 1, shape.end()}) : "";
  if (tuple) {
    constants = cat(shape[0].text, " = ", shape[0].full, "\ninput_shape = (", literal_sizes(graph, sizes_behind),
                    shape.size() == 2 ? ",)\n" : ")\n", constants);
  }
  if (!constants.empty()) constants = cat(writing.constants_comment ? rng.pick(kHeadings) + "\n" : "", constants, gap);
  out += gap;
  if (!writing.constants_last) out += constants;
  out += naming.classes + "class Model(nn.Module):\n";
  if (writing.class_doc) {
    bool listed = flag(0.2) && !naming.arguments.empty();
    out += docstring(class_sentence(graph, writing.docs, rng), listed ? described : std::vector<Described>{}, "",
                     writing.layout, 1);
    if (flag(0.3)) out += "\n";
  }
  out += spelled(init) + spelled(forward) + gap;
  if (writing.constants_last) out += constants;
  Words drawn;
  std::string bound;
  for (int input : naming.inputs) {
    std::string draw = replace_all(graph[input].draw, "{shape}", shape_text(graph[input].shape));
    if (tuple && graph[input].shape == shape) draw = replace_all(draw, sizes_behind, "*input_shape");
    if (literal) draw = literal_sizes(graph, std::move(draw), tuple ? shape[0].text : "");
    const std::string& name = naming.values[static_cast<size_t>(input)];
    if (writing.bound_inputs) bound += cat("    ", name, " = ", draw, "\n");
    drawn.push_back(writing.bound_inputs ? name : draw);
  }
  static const Words kInputDocs = {"Random inputs of forward().", "What forward() is called with.",
                                   "Draws the inputs."};
  static const Words kNoArguments = {"  # nothing to set", "  # Model() takes no arguments", "  # none needed"};
  const bool by_name = !literal && !given.empty() && flag(0.04);
  std::string init_inputs = init_arguments(
      naming, given, by_name ? static_cast<size_t>(rng.below(static_cast<int64_t>(given.size()))) : given.size());
  if (literal) init_inputs = literal_sizes(graph, init_inputs);
  out += cat("def get_inputs():\n", writing.input_docs ? "    \"\"\"" + rng.pick(kInputDocs) + "\"\"\"\n" : "", bound,
             "    return [", join(drawn, ", "), "]\n", gap, "def get_init_inputs():\n    return ", init_inputs);
  return out + (naming.arguments.empty() && flag(0.2) ? rng.pick(kNoArguments) : "") + "\n";
}

}  // namespace tritonrl::graphs
