// SPDX-License-Identifier: Apache-2.0
// One writer a kind of kernel: pointwise and rows; products are in triton_products.cpp, windows in triton_windows.cpp.
#include <algorithm>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

std::string block_name(const Style& style) { return style.block_in_name ? "BLOCK_SIZE" : "BLOCK"; }

void launch(const KernelText& kernel, const std::string& grid, std::vector<std::string>& host, int64_t warps,
            int64_t least) {
  auto arguments = kernel.arguments();
  const Style& style = kernel.style();
  const int64_t chosen = std::max(style.num_warps > 0 ? style.num_warps : warps, least);
  if (chosen > 0) arguments.push_back(cat("num_warps=", chosen));
  if (style.num_stages > 0) arguments.push_back(cat("num_stages=", style.num_stages));
  host.push_back(cat(kernel.name(), "[", grid, "](", join(arguments, ", "), ")"));
}

std::string kernel_name(FileText& file, const KernelPlan& plan, const std::string& fallback) {
  static const std::vector<std::string> kPlain = {"kernel", "fused_kernel", "_kernel", "forward_kernel"};
  std::string name;
  if (file.style.plain) {
    name = "kernel";
  } else if (file.style.settled) {
    name = fallback;
  } else if (file.style.names == 1 || file.plan.kernels.size() > 1) {
    const Node& node = file.plan.graph[plan.anchor];
    name = cat(node.op->name, plan.members.size() > 1 ? "_fused" : "", "_kernel");
  } else if (file.style.names == 0 && !file.plan.graph.title.empty()) {
    name = file.plan.graph.title + "_kernel";
  } else {
    name = file.style.names == 2 ? fallback : kPlain[file.plan.graph.nodes.size() % kPlain.size()];
  }
  std::string own = name;
  for (int i = 2; !file.kernel_names.insert(own).second; ++i) own = cat(name, i);
  return own;
}

void store_all(KernelText& kernel, const KernelPlan& plan, const Place& place, const Shape& shape) {
  for (int id : plan.stores) {
    std::string variable = kernel.value(id, place);
    kernel.store(id, kernel.offset_of(shape, place), variable, KernelText::mask_of(shape, place));
  }
}

namespace {

// The inputs of a plain kernel, loaded before anything is computed.
void load_inputs(KernelText& kernel, const Place& place, const Shape& shape) {
  if (!kernel.style().plain) return;
  for (int id : kernel.file().naming.inputs) {
    if (!kernel.has(id)) kernel.value(id, kernel.broadcast_place(place, shape, kernel.graph()[id].shape));
  }
}

// The kernel under a choice of configurations: block sizes (`block` names them), or warps alone.
std::string tuned(const KernelText& kernel, const std::string& block, const std::string& key) {
  const Style& style = kernel.style();
  std::vector<std::string> configs;
  int64_t count = style.names % 2 ? 2 : 3;
  for (int64_t i = 0; i < count; ++i) {
    std::string meta = block.empty() ? "" : cat("\"", block, "\": ", (style.block >= 1024 ? 512 : 256) << i);
    configs.push_back(cat("triton.Config({", meta, "}, num_warps=", 2 << i, ")"));
  }
  return cat("@triton.autotune(\n    configs=[\n        ", join(configs, ",\n        "), ",\n    ],\n    key=[\"", key,
             "\"],\n)\n", kernel.text());
}

// Launches it; the grid follows from what was chosen.
void launch_tuned(const KernelText& kernel, const std::string& block, const std::string& count,
                  std::vector<std::string>& host) {
  auto arguments = kernel.arguments();
  std::erase_if(arguments, [&](const std::string& argument) { return argument.rfind(block + "=", 0) == 0; });
  host.push_back(cat("grid = lambda meta: (triton.cdiv(", count, ", meta[\"", block, "\"]),)"));
  host.push_back(cat(kernel.name(), "[grid](", join(arguments, ", "), ")"));
}

std::string pointwise_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Shape& shape = file.plan.graph[plan.anchor].shape;
  KernelText kernel(file, index, kernel_name(file, plan, "elementwise_kernel"));
  std::string block = kernel.constant(block_name(file.style), cat(file.style.block));
  std::string out = host_name(file, plan.stores[0]);
  Shape lead(shape.begin(), shape.empty() ? shape.end() : shape.end() - 1);
  int64_t rows = product(lead).full;
  Place place;
  place.of = shape;
  if (file.style.grid_2d && shape.size() >= 2 && !shape.back().is_one() && (rows <= 16 || rows >= 1000) && rows > 1) {
    std::string n = kernel.size(shape.back());
    kernel.head("row", "tl.program_id(0)");
    kernel.head("cols", cat("tl.program_id(1) * ", block, " + tl.arange(0, ", block, ")"));
    kernel.head("mask", cat("cols < ", n));
    kernel.head("off", cat("row * ", n, " + cols"));
    place.at = kernel.take_apart("row", lead, "");
    place.at.push_back({"cols", "mask"});
    place.flat = "off";
    place.flat_mask = "mask";
    store_all(kernel, plan, place, shape);
    std::string width = std::max<int64_t>(file.style.block, 1) > shape.back().full
                            ? cat("triton.next_power_of_2(", shape_text({shape.back()}), ")")
                            : cat(file.style.block);
    auto arguments = kernel.arguments();
    arguments.back() = cat(block, "=", width);
    host.push_back(cat(kernel.name(), "[(", shape_text({product(lead)}), ", triton.cdiv(", shape_text({shape.back()}),
                       ", ", width, "))](", join(arguments, ", "), ")"));
    return kernel.text();
  }
  std::string off = file.style.names == 1 ? "offs" : "off", count = out + ".numel()", start = "pid";
  if (file.style.plain) {
    host.push_back(cat("n = ", count));
    count = "n";
    start = "tl.program_id(0)";
  }
  std::string n = kernel.size(file.style.plain ? "n" : "n_elements", count);
  kernel.head("pid", "tl.program_id(0)");
  kernel.head(off, cat(start, " * ", block, " + tl.arange(0, ", block, ")"));
  kernel.head("mask", cat(off, " < ", n));
  place.at = kernel.take_apart(off, shape, "mask");
  place.flat = off;
  place.flat_mask = "mask";
  load_inputs(kernel, place, shape);
  store_all(kernel, plan, place, shape);
  if (file.style.autotune) {
    launch_tuned(kernel, block, count, host);
    return tuned(kernel, block, n);
  }
  launch(kernel, cat("(triton.cdiv(", count, ", ", file.style.block, "),)"), host, file.style.warps ? 4 : 0);
  return kernel.text();
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------- rows

void set_row_place(KernelText& kernel, const RowSpace& space, bool many) {
  Place& place = kernel.row_place;
  place.of = space.shape;
  std::string outer_mask = many ? "row_ok" : "", inner_mask = many ? "col_ok" : "mask";
  std::string n = kernel.row_count;
  place.flat_mask = "mask";
  place.flat = cat("row * ", n, " + cols");
  if (space.groups >= 0) {
    Shape rest(space.shape.begin() + 2, space.shape.end());
    std::string per_row = space.groups == 0            ? kernel.size(space.shape[1])
                          : space.groups_owner.empty() ? cat(space.groups)
                                                       : kernel.size("groups", space.groups_text());
    const bool several = space.groups > 1 || !space.groups_owner.empty();
    place.at.resize(2);
    if (space.groups == 0) {
      place.at[0] = {cat("(row // ", per_row, ")"), outer_mask};
      place.at[1] = {cat("(row % ", per_row, ")"), outer_mask};
      auto more = kernel.take_apart("cols", rest, inner_mask);
      place.at.insert(place.at.end(), more.begin(), more.end());
    } else {
      Shape inner = rest;
      inner.insert(inner.begin(),
                   {several ? cat("(", space.shape[1].text, " // ", space.groups_text(), ")") : space.shape[1].text,
                    space.shape[1].full / space.groups, space.shape[1].tiny / space.groups});
      auto parts = kernel.take_apart("cols", inner, inner_mask);
      std::string channel = parts[0].text;
      if (several) {
        channel = kernel.fresh("channel");
        kernel.define(channel, cat("(row % ", per_row, ") * ", kernel.size(inner[0]), " + ", parts[0].text));
      }
      place.at[0] = {several ? cat("(row // ", per_row, ")") : "row", outer_mask};
      place.at[1] = {channel, many ? "mask" : inner_mask};
      place.at.insert(place.at.end(), parts.begin() + 1, parts.end());
    }
    return;
  }
  Shape outer = space.outer(), inner = space.inner(), both = outer;
  both.insert(both.end(), inner.begin(), inner.end());
  auto rows = kernel.take_apart("row", both, outer_mask);
  Shape along(space.shape.begin() + space.dims.front(), space.shape.begin() + space.dims.back() + 1);
  auto parts = kernel.take_apart("cols", along, inner_mask);
  place.at.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(outer.size()));
  place.at.insert(place.at.end(), parts.begin(), parts.end());
  place.at.insert(place.at.end(), rows.begin() + static_cast<std::ptrdiff_t>(outer.size()), rows.end());
  Dim behind = product(inner);
  if (!behind.is_one()) {
    std::string i = kernel.size(behind);
    bool lone = product(outer).is_one();
    place.flat = lone ? cat("cols * ", i, " + row") : cat("((row // ", i, ") * ", n, " + cols) * ", i, " + row % ", i);
  } else if (both.empty() || product(both).is_one()) {
    place.flat = "cols";
  }
}

Place row_number_place(const KernelText& kernel, const KernelPlan& plan, const Node& node, const std::string& mask) {
  const RowSpace& space = plan.space;
  Place place;
  place.flat = space.whole() ? "" : "row";
  place.flat_mask = mask;
  place.of = node.shape;
  bool keep = node.shape.size() == space.shape.size();
  for (size_t i = 0; i < space.shape.size(); ++i) {
    bool gone = std::find(space.dims.begin(), space.dims.end(), static_cast<int>(i)) != space.dims.end();
    if (!gone) place.at.push_back(kernel.row_place.at[i]);
    if (gone && keep) place.at.push_back({});
  }
  return place;
}

void store_rows(KernelText& kernel, const KernelPlan& plan, bool many) {
  for (int id : plan.members) {
    bool wanted = std::find(plan.stores.begin(), plan.stores.end(), id) != plan.stores.end();
    const Node& node = kernel.graph()[id];
    Place place = kernel.row_place;
    bool full = node.shape == plan.space.shape;
    if (!full) place = row_number_place(kernel, plan, node, many ? "row_ok" : "");
    std::string variable = kernel.value(id, place);
    if (wanted) kernel.store(id, place.flat, variable, place.flat_mask);
  }
}

namespace {

std::string row_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const RowSpace& space = plan.space;
  KernelText kernel(file, index, kernel_name(file, plan, "row_kernel"));
  bool many = file.style.many_rows && space.rows().full > 1 && !space.whole() && space.length().full <= 1024;
  std::string block =
      kernel.constant(block_name(file.style), cat("triton.next_power_of_2(", shape_text({space.length()}), ")"));
  kernel.row_count = kernel.size(space.length().text == "1" ? Dim{"1", 1, 1} : space.length());
  const std::string& n = kernel.row_count;
  std::string rows = shape_text({space.rows()});
  int64_t per_program = file.style.rows > 0 ? file.style.rows : file.style.tile >= 32 ? 4 : 2;
  if (many) {
    std::string count = kernel.size("rows", rows);
    std::string step = kernel.constant("ROWS", cat(per_program));
    kernel.head("row", cat("tl.program_id(0) * ", step, " + tl.arange(0, ", step, ")[:, None]"));
    kernel.head("cols", cat("tl.arange(0, ", block, ")[None, :]"));
    kernel.head("row_ok", cat("row < ", count));
    kernel.head("col_ok", cat("cols < ", n));
    kernel.head("mask", "row_ok & col_ok");
    kernel.ax = ", axis=1, keep_dims=True";
    kernel.axis = "axis=1";
  } else {
    kernel.head("row", "tl.program_id(0)");
    kernel.head("cols", cat("tl.arange(0, ", block, ")"));
    kernel.head("mask", cat("cols < ", n));
  }
  kernel.row_mask = "mask";
  kernel.row_index = "cols";
  set_row_place(kernel, space, many);
  if (file.style.plain) {
    kernel.ax = ", 0";
    kernel.axis = "0";
    kernel.head("off", kernel.row_place.flat);
    kernel.row_place.flat = "off";
    load_inputs(kernel, kernel.row_place, space.shape);
  }
  store_rows(kernel, plan, many);
  std::string grid = space.whole() ? "(1,)"
                     : many        ? cat("(triton.cdiv(", rows, ", ", per_program, "),)")
                                   : cat("(", rows, ",)");
  std::string text = kernel.text();
  bool has_key = text.find(", " + n + ",") < text.find("):\n");
  if (file.style.autotune && has_key && space.length().full <= 8192) {
    host.push_back(cat(kernel.name(), "[", grid, "](", join(kernel.arguments(), ", "), ")"));
    return tuned(kernel, "", n);
  }
  launch(kernel, grid, host, file.style.warps ? (space.length().full > 2048 ? 8 : 4) : 0,
         space.length().full > 8192 ? 16 : 0);
  return text;
}

// A sum, mean or extreme of everything: one partial result a block, then one program over those.
std::string two_pass_kernels(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& anchor = file.plan.graph[plan.anchor];
  const Shape& shape = plan.space.shape;
  std::string name = kernel_name(file, plan, "reduce_kernel"), block = block_name(file.style);
  int64_t width = file.style.block;
  std::string total = shape_text({product(shape)}), partial = cat("partial", index ? cat(index) : ""),
              count = cat("blocks", index ? cat(index) : "");
  std::string reduce = anchor.op->name == "amax" ? "tl.max" : anchor.op->name == "amin" ? "tl.min" : "tl.sum";

  KernelText first(file, index, name + "_partial");
  std::string n = first.size("n_elements", total);
  first.constant(block, cat(width));
  first.head("pid", "tl.program_id(0)");
  first.head("off", cat("pid * ", block, " + tl.arange(0, ", block, ")"));
  first.head("mask", cat("off < ", n));
  Place place;
  place.of = shape;
  place.at = first.take_apart("off", shape, "mask");
  place.flat = "off";
  place.flat_mask = "mask";
  std::string x = first.value(anchor.operands[0], place);
  std::string pointer = first.scratch(partial);
  first.comment("one partial result per program");
  first.line(
      cat("tl.store(", pointer, " + pid, ", reduce, "(tl.where(mask, ", x, ", ", anchor.op->fill, "), axis=0))"));
  host.push_back(cat(count, " = triton.cdiv(", total, ", ", width, ")"));
  host.push_back(cat(partial, " = torch.empty(", count, ", device=",
                     file.naming.values[static_cast<size_t>(file.naming.inputs[0])], ".device, dtype=torch.float32)"));
  launch(first, cat("(", count, ",)"), host);

  KernelText second(file, index, name);
  std::string from = second.scratch(partial), blocks = second.size("n_blocks", count);
  second.constant(block, cat("triton.next_power_of_2(", count, ")"));
  second.head("off", cat("tl.arange(0, ", block, ")"));
  second.head("mask", cat("off < ", blocks));
  second.line(cat("part = tl.load(", from, " + off, mask=mask, other=", anchor.op->fill, ")"));
  std::string result = second.assign("total", cat(reduce, "(part, axis=0)"));
  if (anchor.op->name == "mean") result = second.assign("total", cat(result, " / ", second.size("n_elements", total)));
  second.set(plan.anchor, result);
  second.row_place = {};
  store_rows(second, plan, false);
  launch(second, "(1,)", host);
  return first.text() + "\n\n" + second.text();
}

}  // namespace

std::string host_name(const FileText& file, int node) {
  int from = file.plan.from[static_cast<size_t>(node)];
  if (file.style.plain && file.plan.graph[node].kind == Node::Kind::kCompute) return "out";
  return from < 0 ? cat("each", node) : file.naming.values[static_cast<size_t>(from)];
}

std::string write_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& anchor = file.plan.graph[plan.anchor];
  switch (plan.kind) {
    case KernelPlan::Kind::kPointwise:
      return pointwise_kernel(file, index, host);
    case KernelPlan::Kind::kRow: {
      bool simple = anchor.op->name == "sum" || anchor.op->name == "mean" || anchor.op->name == "amax" ||
                    anchor.op->name == "amin";
      bool long_row = plan.space.length().full > 8192;
      if (plan.space.whole() && simple && (file.style.two_kernels || long_row))
        return two_pass_kernels(file, index, host);
      if (file.plan.loops(plan.space) && loopable(*anchor.op)) return long_row_kernel(file, index, host);
      return row_kernel(file, index, host);
    }
    case KernelPlan::Kind::kWindow:
      return window_kernel(file, index, host);
    case KernelPlan::Kind::kGemm:
      return gemm_kernel(file, index, host);
    case KernelPlan::Kind::kConv:
      return conv_kernel(file, index, host);
  }
  return "";
}

}  // namespace tritonrl::graphs
