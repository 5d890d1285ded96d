// SPDX-License-Identifier: Apache-2.0
// Names, graphs and PyTorch sources; the Triton side is recipe_triton.cpp.
#include "data/recipe.h"

#include "base/check.h"
#include "base/text.h"
#include "data/recipe_parts.h"

namespace tritonrl {

namespace {

const char* role_of(Layout layout) {
  switch (layout) {
    case Layout::kFull:
      return "full";
    case Layout::kRow:
      return "row";
    case Layout::kColumn:
      return "column";
    case Layout::kLeft:
      return "left";
    case Layout::kRight:
      return "right";
  }
  return "";
}

// Synonyms become one operator: x - 1 is x + (-1), relu6 is a clamp.
OpGraph::NodeId add_step(OpGraph& graph, const Step& step, std::vector<OpGraph::NodeId> operands) {
  std::string op = step.op->graph_name.empty() ? step.op->name : step.op->graph_name;
  std::vector<double> values = step.attributes;
  if (op == "sub_scalar") op = "add_scalar", values[0] = -values[0];
  if (op == "relu6") op = "clamp", values = {0.0, 6.0};
  std::vector<std::string> attributes;
  for (double value : values) attributes.push_back(python_float(value));
  return graph.add(op, attributes, std::move(operands), step.op->commutative);
}

std::vector<std::string> core_attributes(const Core& core) {
  std::vector<std::string> out;
  if (core.op == "linear") return out;
  if (core.op == "matmul") {
    if (core.x_transposed) out.push_back("x transposed");
    if (core.y_transposed) out.push_back("y transposed");
    return out;
  }
  out.push_back(core.first_dim ? "dim=0" : "dim=-1");
  if (core.keepdim) out.push_back("keepdim");
  if (core.op == "layer_norm" || core.op == "rms_norm") out.push_back(cat("eps=", python_float(core.eps)));
  if (core.op == "normalize") out.push_back(cat("p=", core.p));
  return out;
}

std::string core_in_torch(const Recipe& recipe) {
  const Core& core = recipe.core;
  std::string dim = core.first_dim ? "dim=0" : "dim=-1";
  std::string reduced = dim + (core.keepdim ? ", keepdim=True" : "");
  if (core.op == "l1_norm") return cat("torch.norm(x, p=1, ", reduced, ")");
  if (core.op == "l2_norm") return cat("torch.norm(x, p=2, ", reduced, ")");
  if (core.op == "var" || core.op == "std") return cat("torch.", core.op, "(x, ", reduced, ", unbiased=False)");
  if (recipe.family == Family::kReduction) return cat("torch.", core.op, "(x, ", reduced, ")");
  if (core.op == "softmin") return cat("F.softmin(x, ", dim, ")");
  if (recipe.family == Family::kSoftmax) return cat("torch.", core.op, "(x, ", dim, ")");
  if (core.op == "normalize") return cat("F.normalize(x, ", core.p == 1 ? "p=1, " : "", dim, ")");
  if (core.op == "linear") return "self.linear(x)";
  if (core.op == "matmul")
    return cat("torch.matmul(x", core.x_transposed ? ".T" : "", ", y", core.y_transposed ? ".T" : "", ")");
  if (core.weight) return "self.norm(x)";
  bool default_eps = core.op == "layer_norm" && core.eps == 1e-5;
  return cat("F.", core.op, "(x, x.shape[-1:]", default_eps ? "" : cat(", eps=", python_float(core.eps)), ")");
}

std::string shape_of(const Recipe& recipe, Layout layout) {
  switch (layout) {
    case Layout::kFull:
      return "M, N";
    case Layout::kRow:
      return "N";
    case Layout::kColumn:
      return "M, 1";
    case Layout::kLeft:
      return recipe.core.x_transposed ? "K, M" : "M, K";
    case Layout::kRight:
      return recipe.core.y_transposed ? "N, K" : "K, N";
  }
  return "";
}

std::string lines_in_torch(const Recipe& recipe) {
  std::string body;
  if (keeps_input(recipe)) body += "        r = x\n";
  auto add_steps = [&](const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      body += cat("        x = ", fill_template(step.op->torch, operand_names(step), step.attributes), "\n");
    }
  };
  add_steps(recipe.before);
  if (!recipe.core.op.empty()) body += cat("        x = ", core_in_torch(recipe), "\n");
  add_steps(recipe.after);
  return body + "        return x\n";
}

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::kElementwise:
      return "elementwise";
    case Family::kReduction:
      return "reduction";
    case Family::kSoftmax:
      return "softmax";
    case Family::kNorm:
      return "norm";
    case Family::kGemm:
      return "gemm";
  }
  return "";
}

std::string Recipe::name() const {
  std::vector<std::string> parts;
  for (const Step& step : before) parts.push_back(step.op->name);
  if (!core.op.empty()) parts.push_back(core.op);
  for (const Step& step : after) parts.push_back(step.op->name);
  return join(parts, "_");
}

OpGraph Recipe::graph() const {
  OpGraph graph;
  std::vector<OpGraph::NodeId> input_nodes;
  for (const RecipeInput& input : inputs) input_nodes.push_back(graph.add_input(role_of(input.layout)));
  OpGraph::NodeId x = input_nodes[0];
  auto add_steps = [&](const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      std::vector<OpGraph::NodeId> operands = {x};
      for (int other : step.others)
        operands.push_back(input_nodes[other == kKeptInput ? 0 : static_cast<size_t>(other)]);
      x = add_step(graph, step, operands);
    }
  };
  add_steps(before);
  if (!core.op.empty()) {
    std::vector<OpGraph::NodeId> operands = {x};
    if (core.op == "matmul") operands.push_back(input_nodes[1]);
    if (core.op == "linear" || core.weight) operands.push_back(graph.add_parameter("weight"));
    if (core.bias) operands.push_back(graph.add_parameter("bias"));
    x = graph.add(core.op, core_attributes(core), operands);
  }
  add_steps(after);
  graph.set_output(x);
  return graph;
}

std::string Recipe::source(const std::map<std::string, int64_t>& sizes) const {
  std::string body = lines_in_torch(*this), constants, drawn;
  for (const char* name : {"M", "N", "K"}) {
    bool wanted = name[0] != 'K' || family == Family::kGemm;
    CHECK(!wanted || sizes.count(name) > 0) << "no size " << name;
    if (wanted) constants += cat(name, " = ", sizes.at(name), "\n");
  }
  for (const RecipeInput& input : inputs) {
    std::string shape = shape_of(*this, input.layout);
    drawn += (drawn.empty() ? "" : ", ") +
             (input.positive ? cat("torch.rand(", shape, ") + 0.5") : cat("torch.randn(", shape, ")"));
  }
  bool functional = body.find("F.") != std::string::npos;
  return cat("import torch\nimport torch.nn as nn\n", functional ? "import torch.nn.functional as F\n" : "", "\n",
             constants, "\n\nclass Model(nn.Module):\n", constructor_of(*this), "    def forward(self, ",
             input_names(*this), "):\n", body, "\n\ndef get_inputs():\n    return [", drawn,
             "]\n\n\ndef get_init_inputs():\n    return [", init_arguments(*this), "]\n");
}

}  // namespace tritonrl
