// SPDX-License-Identifier: Apache-2.0
#include "data/synth/torch_writer.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

bool is_number(const Dim& dim) { return std::isdigit(static_cast<unsigned char>(dim.text[0])) != 0; }

std::string dim_name(int dim, size_t rank, const Named& named) {
  return dim == static_cast<int>(rank) - 1 && !named.count(kFromFront) ? "-1" : cat(dim);
}

std::string over_text(const TensorGraph& graph, const Node& node, const Named& named) {
  size_t rank = graph[node.operands[0]].shape.size();
  if (node.dims.size() == rank && node.op->name != "logsumexp") return "";
  std::vector<std::string> dims;
  for (int dim : node.dims) dims.push_back(dim_name(dim, rank, named));
  if (dims.size() >= 2) dims.back() = cat(node.dims.back());
  auto keep = node.ints.find("keepdim");
  const std::string list = named.count(kListedDims) ? "[" + join(dims, ", ") + "]" : "(" + join(dims, ", ") + ")";
  return cat(", dim=", dims.size() == 1 ? dims[0] : list,
             keep != node.ints.end() && keep->second ? ", keepdim=True" : "");
}

std::string slice_text(const Node& node) {
  std::string out;
  for (int i = 0; i < node.dims[0]; ++i) out += ":, ";
  int64_t start = node.ints.at("start"), end = node.ints.at("end");
  return cat(out, start ? cat(start) : "", ":", end ? cat(-end) : "");
}

}  // namespace

Named written(const Writing& writing) {
  Named out;
  if (writing.from_front) out[kFromFront] = "";
  if (writing.listed_dims) out[kListedDims] = "";
  return out;
}

std::string torch_expression(const TensorGraph& graph, const Node& node, std::string text,
                             const std::vector<std::string>& operands, const Named& named) {
  size_t rank = graph[node.operands[0]].shape.size();
  if (node.op->name == "matmul" && node.ints.at("transposed") && text == node.op->torch)
    text = "torch.matmul({x}, {y}.transpose(-2, -1))";
  if (node.op->name == "unsqueeze") rank = 0;
  auto sub = [&](const char* key, const std::string& value) { text = replace_all(text, key, value); };
  std::string over = over_text(graph, node, named);
  auto dim = named.find("dim");
  if (dim != named.end() && node.dims.size() == 1 && !over.empty())
    over = replace_all(over, cat("dim=", dim_name(node.dims[0], rank, named)), "dim=" + dim->second);
  if (auto keep = named.find("keepdim"); keep != named.end() && !over.empty())
    over = cat(replace_all(over, ", keepdim=True", ""), ", keepdim=", keep->second);
  sub("{over}", over);
  sub("{of}", over.empty() ? "" : over.substr(2));
  for (const auto& [key, name] : named) sub(("{" + key + "}").c_str(), name);
  if (!node.dims.empty()) {
    sub("{dim}", node.op->name == "stack" ? cat(node.dims[0]) : dim_name(node.dims[0], rank, named));
    if (text.find("{dim0}") != std::string::npos) {
      std::vector<std::string> moved;
      for (size_t i = 0; i < node.dims.size(); ++i) {
        if (node.dims[i] != static_cast<int>(i)) moved.push_back(cat(i));
      }
      sub("{dim0}", moved.at(0));
      sub("{dim1}", moved.at(1));
    }
    std::vector<std::string> order;
    for (int dim : node.dims) order.push_back(cat(dim));
    sub("{order}", join(order, ", "));
  }
  if (text.find("{slice}") != std::string::npos) sub("{slice}", slice_text(node));
  if (text.find("{sizes}") != std::string::npos) {
    std::vector<std::string> sizes(rank, "-1");
    sizes[static_cast<size_t>(node.dims[0])] = cat(node.ints.at("size"));
    sub("{sizes}", join(sizes, ", "));
  }
  bool sum = node.ints.count("sum") && node.ints.at("sum");
  sub("{reduction}", sum ? ", reduction=\"sum\"" : "");
  sub("{nn_reduction}", sum ? "reduction=\"sum\"" : "");
  sub("{hinge}", sum ? "sum" : "mean");
  for (const auto& [key, value] : node.ints) sub(("{" + key + "}").c_str(), cat(value));
  sub("{self}", "self." + node.member);
  std::vector<std::string> tensors(operands.begin(),
                                   operands.begin() + std::min<std::ptrdiff_t>(3, std::ssize(operands)));
  return fill_template(text, tensors, node.numbers);
}

bool is_call(const std::string& torch) {
  bool call = torch.rfind("torch.", 0) == 0 || torch.rfind("F.", 0) == 0 || torch.rfind("{self}", 0) == 0;
  return call && torch.back() == ')' && torch.find(") ") == std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool keeps_first_input(const TensorGraph& graph) {
  bool computed = false;
  for (const Node& node : graph.nodes) {
    if (node.kind != Node::Kind::kCompute) continue;
    if (computed && std::find(node.operands.begin(), node.operands.end(), 0) != node.operands.end()) return true;
    computed = true;
  }
  return false;
}

Naming name_everything(const TensorGraph& graph, bool plain, Rng rng) {
  Naming naming;
  naming.plain = plain;
  naming.values.resize(graph.nodes.size());
  static const std::vector<std::vector<std::string>> kInputNames = {{"x", "y", "z", "w"},
                                                                    {"a", "b", "c", "d"},
                                                                    {"x", "other", "third", "fourth"},
                                                                    {"x1", "x2", "x3", "x4"},
                                                                    {"inp", "aux", "extra", "rest"}};
  const auto& names = plain ? kInputNames[0] : rng.pick(kInputNames);
  static const std::vector<std::vector<std::string>> kInnerNames = {{"h"}, {"t"}, {"out"}, {"v"}, {"y_"}};
  const std::string stem = rng.pick(kInnerNames)[0];
  std::set<std::string> taken;
  bool labelled = graph.title == "attention" && rng.uniform() < 0.7;
  int count = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.kind == Node::Kind::kInput) {
      size_t place = naming.inputs.size();
      std::string name = labelled ? std::vector<std::string>{"q", "k", "v", "m"}[place] : names[place];
      if (node.type == Type::kInt64)
        name = node.draw.find("({shape},)") == std::string::npos ? name : cat("idx", place ? cat(place) : "");
      naming.values[i] = name;
      naming.inputs.push_back(static_cast<int>(i));
      taken.insert(name);
    } else if (node.kind == Node::Kind::kParameter) {
      naming.values[i] = "self." + node.member;
    } else if (plain) {
      naming.values[i] = names[0];
    } else {
      std::string name;
      do name = cat(stem, count++ ? cat(count) : "");
      while (!taken.insert(name).second);
      naming.values[i] = name;
    }
  }
  // Arguments of __init__: every size a module or parameter needs, once.
  auto argument = [&](const Dim& dim) -> std::string {
    if (is_number(dim)) return dim.text;
    for (const Argument& known : naming.arguments) {
      if (known.dim == dim) return known.name;
    }
    std::string name = graph.symbols.count(dim.text) ? lower_case(dim.text) : cat("dim", naming.arguments.size());
    naming.arguments.push_back({name, dim});
    return name;
  };
  std::string body;
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::kCompute && !node.module.empty()) {
      std::string text = node.module;
      for (size_t i = 0; i < node.module_dims.size(); ++i) {
        text = replace_all(text, cat("{", i, "}"), argument(node.module_dims[i]));
      }
      body += cat("        self.", node.member, " = ", text, "\n");
    } else if (node.kind == Node::Kind::kParameter && !node.draw.empty()) {
      std::vector<std::string> sizes;
      for (const Dim& dim : node.shape) sizes.push_back(argument(dim));
      std::string type = node.type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(node.type));
      body += cat("        self.", node.member, " = nn.Parameter(torch.randn(", join(sizes, ", "), type, "))\n");
    }
  }
  if (!body.empty()) {
    std::vector<std::string> names_only;
    for (const Argument& argument : naming.arguments) names_only.push_back(argument.name);
    std::string list = names_only.empty() ? "self" : "self, " + join(names_only, ", ");
    naming.constructor = cat("    def __init__(", list, "):\n        super().__init__()\n", body, "\n");
  }
  return naming;
}

std::string torch_source(const TensorGraph& graph, const Naming& naming, Rng rng) {
  bool nested = rng.uniform() < 0.35 && !naming.plain, one_name = rng.uniform() < 0.3;
  bool kept = naming.plain && keeps_first_input(graph);
  std::string body = kept ? "        r = x\n" : "";
  std::vector<std::string> texts = naming.values;
  std::vector<std::string> arguments, drawn;
  for (int input : naming.inputs) {
    arguments.push_back(naming.values[static_cast<size_t>(input)]);
    drawn.push_back(replace_all(graph[input].draw, "{shape}", shape_text(graph[input].shape)));
  }
  // With one name for the running value, each node must be used by the next one alone.
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != Node::Kind::kCompute) continue;
    auto users = graph.users(static_cast<int>(i));
    one_name &= users.size() <= 1 && (users.empty() || users[0] == static_cast<int>(i) + 1);
  }
  one_name &= graph.outputs.size() == 1;
  for (int user : graph.users(naming.inputs[0])) {  // The argument's name is taken over by the first result.
    for (size_t i = 0; i < static_cast<size_t>(user); ++i) one_name &= graph.nodes[i].kind != Node::Kind::kCompute;
  }
  int last = graph.outputs[0];
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.kind != Node::Kind::kCompute) continue;
    std::vector<std::string> operands;
    for (int operand : node.operands) operands.push_back(texts[static_cast<size_t>(operand)]);
    std::string text = torch_expression(graph, node, node.torch(), operands);
    if (kept) texts[0] = "r";  // From the second node on.
    auto users = graph.users(static_cast<int>(i));
    bool single = users.size() == 1 && !graph.is_output(static_cast<int>(i));
    if (nested && single && is_call(node.torch()) && text.size() < 50) {
      const Node& user = graph[users[0]];
      size_t slot = static_cast<size_t>(std::find(user.operands.begin(), user.operands.end(), static_cast<int>(i)) -
                                        user.operands.begin());
      std::string key = cat("{", "xyz"[std::min<size_t>(slot, 2)], "}");
      bool twice = std::count(user.operands.begin(), user.operands.end(), static_cast<int>(i)) > 1;
      if (!twice && count_of(user.torch(), key) == 1) {
        texts[i] = text;
        continue;
      }
    }
    if (graph.outputs.size() == 1 && static_cast<int>(i) == last && !naming.plain) {
      body += cat("        return ", text, "\n");
    } else {
      if (one_name && !naming.plain) texts[i] = arguments[0];
      body += cat("        ", texts[i], " = ", text, "\n");
    }
  }
  if (graph.outputs.size() > 1 || naming.plain) {
    std::vector<std::string> names;
    for (int output : graph.outputs) names.push_back(texts[static_cast<size_t>(output)]);
    body += cat("        return ", join(names, ", "), "\n");
  }
  std::string constants;
  for (const auto& [name, dim] : graph.symbols) constants += cat(name, " = ", dim.full, "\n");
  std::vector<std::string> given;
  for (const Argument& argument : naming.arguments) given.push_back(shape_text({argument.dim}));
  bool functional = body.find("F.") != std::string::npos;
  return cat("import torch\nimport torch.nn as nn\n", functional ? "import torch.nn.functional as F\n" : "", "\n",
             constants, "\n\nclass Model(nn.Module):\n", naming.constructor, "    def forward(self, ",
             join(arguments, ", "), "):\n", body, "\n\ndef get_inputs():\n    return [", join(drawn, ", "),
             "]\n\n\ndef get_init_inputs():\n    return [", join(given, ", "), "]\n");
}

}  // namespace tritonrl::graphs
