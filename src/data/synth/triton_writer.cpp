// SPDX-License-Identifier: Apache-2.0
#include "data/synth/triton_writer.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

// "B, C, _, W = x.shape" for the inputs that are needed to know every symbol the wrapper mentions.
std::vector<std::string> size_lines(const TensorGraph& graph, const Naming& naming, const std::string& wanted,
                                    bool read) {
  std::vector<std::string> lines;
  std::set<std::string> known;
  auto mentioned = [&](const std::string& name) {
    for (size_t at = wanted.find(name); at != std::string::npos; at = wanted.find(name, at + 1)) {
      auto inside = [&](size_t i) {
        return i < wanted.size() &&
               (std::isalnum(static_cast<unsigned char>(wanted[i])) || wanted[i] == '_' || wanted[i] == '.');
      };
      if ((at == 0 || !inside(at - 1)) && !inside(at + name.size())) return true;
    }
    return false;
  };
  auto from_shape = [&](const Shape& shape, const std::string& owner) {
    std::vector<std::string> left;
    int fresh = 0;
    for (const Dim& dim : shape) {
      bool take = graph.symbols.count(dim.text) && mentioned(dim.text) && known.insert(dim.text).second;
      fresh += take;
      left.push_back(take ? dim.text : "_");
    }
    if (fresh == 0) return;
    if (fresh == 1 && shape.size() > 1) {
      size_t at = static_cast<size_t>(
          std::find_if(left.begin(), left.end(), [](const std::string& s) { return s != "_"; }) - left.begin());
      lines.push_back(cat(left[at], " = ", owner, ".shape[", at, "]"));
    } else {
      lines.push_back(cat(join(left, ", "), shape.size() == 1 ? "," : "", " = ", owner, ".shape"));
    }
  };
  for (int input : naming.inputs) from_shape(graph[input].shape, naming.values[static_cast<size_t>(input)]);
  for (size_t i = 0; read && i < graph.nodes.size(); ++i) {  // What layers say of themselves.
    const Node& node = graph.nodes[i];
    if (node.kind != Node::Kind::kCompute || naming.owners[i].empty()) continue;
    bool linear = node.op->name == "linear";
    if (!linear && node.op->work != Work::kConv) continue;
    const std::string& size = linear ? node.shape.back().text : node.shape[1].text;
    if (graph.symbols.count(size) && mentioned(size) && known.insert(size).second)
      lines.push_back(cat(size, " = ", naming.owners[i], linear ? ".out_features" : ".out_channels"));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.kind != Node::Kind::kParameter) continue;
    // Norms' parameters may be viewed with trailing ones; in the module they have one dimension.
    Shape real = node.shape;
    while (real.size() > 1 && real.back().is_one() && node.draw.empty()) real.pop_back();
    from_shape(real, naming.values[i]);
  }
  return lines;
}

}  // namespace

Style draw_style(bool plain, bool gpu_sizes, Rng rng) {
  Style style;
  style.plain = plain;
  if (plain) return style;
  auto flag = [&](double p) { return rng.uniform() < p; };
  style.grid_2d = flag(0.3);
  style.many_rows = flag(0.25);
  style.two_kernels = flag(0.4);
  style.helpers = flag(0.35);
  style.implicit_gemm = flag(0.5);
  style.flat_programs = flag(0.35);
  style.comments = flag(0.4);
  style.explicit_cast = flag(0.4);
  style.keyword_other = flag(0.6);
  style.block_in_name = flag(0.45);
  style.warps = flag(0.3);
  style.names = static_cast<int>(rng.below(4));
  style.allocation = static_cast<int>(rng.below(3));
  style.block =
      rng.pick(gpu_sizes ? std::vector<int64_t>{1024, 2048, 4096} : std::vector<int64_t>{512, 1024, 1024, 2048});
  style.tile = rng.pick(gpu_sizes ? std::vector<int64_t>{32, 64} : std::vector<int64_t>{16, 32, 32});
  return style;
}

Style settled_style(bool gpu_sizes) {
  Style style;
  style.settled = style.two_kernels = style.implicit_gemm = style.keyword_other = style.pass_scalars = true;
  style.names = 1;
  style.conv_columns = 64;
  style.conv_depth = 32;
  style.longest_row = gpu_sizes ? 8192 : 64;
  style.row_block = gpu_sizes ? 0 : 32;
  return style;
}

void draw_schedule(Style& style, bool gpu_sizes, Rng rng) {
  auto flag = [&](double p) { return rng.uniform() < p; };
  using Sizes = std::vector<int64_t>;
  style.pass_scalars = flag(0.85) || style.settled;
  style.autotune = flag(0.12) && !style.settled;
  if (flag(0.5)) style.num_warps = rng.pick(style.settled ? Sizes{4, 4, 8} : Sizes{1, 2, 4, 4, 8});
  if (flag(0.3)) style.num_stages = rng.pick(Sizes{1, 2, 3, 4});
  style.rows = rng.pick(Sizes{2, 4, 8});
  style.block = rng.pick(gpu_sizes ? Sizes{512, 1024, 2048, 4096} : Sizes{256, 512, 1024, 1024, 2048});
  style.tile = rng.pick(!gpu_sizes ? Sizes{16, 32, 32, 64} : style.tf32 ? Sizes{32, 64, 128} : Sizes{32, 64});
  style.read_modules = flag(0.97) || style.settled;
  if (style.settled) style.conv_columns = rng.pick(Sizes{32, 64});
}

std::string triton_solution(const TensorGraph& given, const Naming& naming, const Style& style,
                            const Writing* writing) {
  TensorGraph graph = given;
  std::map<int, ReadWindow> windows;
  bool read = style.read_modules && writing != nullptr;
  if (read) windows = read_windows(graph, naming);
  auto plan = plan_kernels(graph, style.longest_row);
  if (!plan || plan->kernels.empty()) return "";
  FileText file{*plan, naming, style, {}, {}, {}, {}};
  for (size_t i = 0; i < plan->graph.nodes.size(); ++i) {
    if (auto it = windows.find(plan->from[i]); it != windows.end())
      file.windows.emplace(static_cast<int>(i), it->second);
  }
  for (KernelPlan& kernel : plan->kernels) {
    for (int member : kernel.members) {
      int from = plan->from[static_cast<size_t>(member)];
      if (read && from >= 0 && kernel.space.groups > 0 && graph[from].op != nullptr &&
          graph[from].op->name == "group_norm")
        kernel.space.groups_owner = naming.owners[static_cast<size_t>(from)];
    }
  }
  std::vector<std::string> host, kernels;
  std::string device = naming.values[static_cast<size_t>(naming.inputs[0])];
  for (size_t k = 0; k < plan->kernels.size(); ++k) {
    if (auto it = file.windows.find(plan->kernels[k].anchor); it != file.windows.end())
      host.insert(host.end(), it->second.lines.begin(), it->second.lines.end());
    for (int id : plan->kernels[k].stores) {
      const Node& node = plan->graph[id];
      std::string type = torch_name(node.type);
      int like = -1;
      for (int input : naming.inputs) {
        if (graph[input].type == node.type) {
          like = input;
          break;
        }
      }
      std::string first = like >= 0 ? naming.values[static_cast<size_t>(like)] : device;
      if (like >= 0) type = first + ".dtype";
      std::string shape = cat("(", shape_text(node.shape), node.shape.size() == 1 ? ",)" : ")");
      std::string text = cat("torch.empty(", shape, ", device=", first, ".device, dtype=", type, ")");
      if (style.allocation == 1 || style.plain)
        text = cat(first, ".new_empty(", shape, like >= 0 ? "" : cat(", dtype=", type), ")");
      if ((style.allocation == 2 || style.plain) && like >= 0 && graph[like].shape == node.shape)
        text = cat("torch.empty_like(", first, ")");
      host.push_back(cat(host_name(file, id), " = ", text));
    }
    kernels.push_back(write_kernel(file, static_cast<int>(k), host));
  }
  std::string wanted = join(host, "\n");
  std::string body;
  for (const std::string& text : size_lines(graph, naming, wanted, read)) body += "        " + text + "\n";
  for (const std::string& text : host) body += "        " + text + "\n";
  std::vector<std::string> outputs, arguments;
  for (int output : plan->graph.outputs) outputs.push_back(host_name(file, output));
  for (int input : naming.inputs) arguments.push_back(naming.values[static_cast<size_t>(input)]);
  if (!naming.parameters.empty()) arguments = naming.parameters;
  body += cat("        return ", join(outputs, ", "), "\n");
  std::string text = "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n";
  for (const std::string& line : naming.imports) text += line + "\n";
  for (const std::string& name : file.helper_order) text += cat("\n\n@triton.jit\ndef ", name, file.helpers[name]);
  for (const auto& [name, count] : {std::pair("pair", 2), std::pair("triple", 3)}) {
    if (body.find(cat(" = ", name, "(")) == std::string::npos) continue;
    std::vector<std::string> same(static_cast<size_t>(count), "v");
    text += cat("\n\ndef ", name, "(v):\n    return (", join(same, ", "), ") if isinstance(v, int) else v\n");
  }
  for (const std::string& kernel : kernels) text += "\n\n" + kernel;
  if (writing == nullptr) {
    if (!naming.new_classes.empty()) text += "\n\n" + naming.new_classes;
    return cat(text, "\n\nclass ModelNew(nn.Module):\n", naming.constructor, "    def forward(self, ",
               join(arguments, ", "), "):\n", body);
  }
  for (std::string& argument : arguments) argument += writing->new_hints ? ": torch.Tensor" : "";
  if (!naming.new_classes.empty()) text += "\n\n" + naming.new_classes;
  static const std::vector<std::string> kDocs = {"The same with Triton.", "Fused forward pass.",
                                                 "Launches the kernels above.", "Triton version of Model."};
  std::string doc = writing->new_doc ? cat("    \"\"\"", kDocs[body.size() % kDocs.size()], "\"\"\"\n\n") : "";
  return cat(text, "\n\nclass ModelNew(nn.Module):\n", doc, people_constructor(naming, *writing, body),
             "    def forward(self, ", join(arguments, ", "), "):\n", body);
}

}  // namespace tritonrl::graphs
