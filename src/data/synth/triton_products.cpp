// SPDX-License-Identifier: Apache-2.0
// Writers of kernels that sum products: matrix products and convolutions.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

bool plain(const FileText& file, int kernel, int id) {
  int home = file.plan.home[static_cast<size_t>(id)];
  return file.plan.graph[id].kind != Node::Kind::kCompute || (home >= 0 && home < kernel);
}

std::string dot_line(const Style&, Type type, const std::string& a, const std::string& b, bool raw) {
  if (raw && is_half(type)) return cat("acc = tl.dot(", a, ", ", b, ", acc)");
  return cat("acc = tl.dot(", a, ", ", b, ", acc, input_precision=\"ieee\")");
}

// The tile of an operand: as it lies in memory where it can be, else computed and masked.
std::string tile_of(KernelText& kernel, int id, const Place& place, bool raw, const std::string& stem) {
  const Node& node = kernel.graph()[id];
  std::string mask = KernelText::mask_of(node.shape, place);
  if (plain(kernel.file(), kernel.kernel(), id)) {
    std::string text = kernel.load(id, kernel.offset_of(node.shape, place), mask);
    if (raw && is_half(node.type)) text = replace_all(text, ".to(tl.float32)", "");
    return kernel.assign(stem, text);
  }
  std::string v = kernel.value(id, place);
  return kernel.assign(stem, cat("tl.where(", mask, ", ", v, ", 0.0)"));
}

}  // namespace

std::string gemm_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const TensorGraph& graph = file.plan.graph;
  const Node& node = graph[plan.anchor];
  int x = node.operands[0], y = node.operands[1];
  const Shape& left = graph[x].shape;
  bool linear = node.op->name == "linear";
  bool by_n = linear || (node.ints.count("transposed") && node.ints.at("transposed"));
  KernelText kernel(file, index, kernel_name(file, plan, "matmul_kernel"));
  size_t rank = node.shape.size();
  Shape lead(node.shape.begin(), node.shape.end() - 2);
  bool folded = linear && rank == 3;  // Rows of all batches are one long dimension.
  Dim rows = folded ? product({node.shape[0], node.shape[1]}) : node.shape[rank - 2], columns = node.shape[rank - 1],
      inner = left.back();
  int64_t tile = file.style.tile, depth = file.style.tile >= 32 ? 32 : 16;
  bool simple = file.style.plain;
  auto constant = [&](const char* name, int64_t value) {
    return simple ? cat(value) : kernel.constant(name, cat(value));
  };
  std::string bm = constant("BM", tile), bn = constant("BN", tile), bk = constant("BK", depth);
  std::string m = kernel.size(rows), n = kernel.size(columns), k = kernel.size(inner);
  bool batched = !folded && !product(lead).is_one();
  if (file.style.flat_programs) {
    kernel.head("pid", "tl.program_id(0)");
    kernel.head("tiles_n", cat("tl.cdiv(", n, ", ", bn, ")"));
    kernel.head("pid_m", "pid // tiles_n");
    kernel.head("pid_n", "pid % tiles_n");
  } else {
    kernel.head("pid_m", "tl.program_id(0)");
    kernel.head("pid_n", "tl.program_id(1)");
  }
  std::string rm = kernel.fresh(simple ? "i" : "rows_m"), rn = kernel.fresh(simple ? "j" : "cols_n");
  std::string rk = kernel.fresh("inner");
  kernel.head(rm, cat("(pid_m * ", bm, " + tl.arange(0, ", bm, "))[:, None]"));
  kernel.head(rn, cat("(pid_n * ", bn, " + tl.arange(0, ", bn, "))[None, :]"));
  kernel.head(rk, cat("tl.arange(0, ", bk, ")"));
  std::string m_ok = cat("(", rm, " < ", m, ")"), n_ok = cat("(", rn, " < ", n, ")");
  std::vector<Coord> batch;
  if (batched) {
    kernel.head("batch", cat("tl.program_id(", file.style.flat_programs ? 1 : 2, ")"));
    batch = kernel.take_apart("batch", lead, "");
  } else if (!folded) {
    batch.resize(lead.size());
  }
  std::vector<Coord> row_coords = folded ? kernel.take_apart(rm, {node.shape[0], node.shape[1]}, m_ok) : batch;
  if (!folded) row_coords.push_back({rm, m_ok});
  kernel.line(cat("acc = tl.zeros((", bm, ", ", bn, "), dtype=tl.float32)"));
  std::string step = kernel.fresh("k0");
  kernel.open(cat("for ", step, " in range(0, ", k, ", ", bk, "):"));
  std::string ka = kernel.assign("ka", cat("(", step, " + ", rk, ")[None, :]"));
  std::string kb = kernel.assign("kb", cat("(", step, " + ", rk, ")[:, None]"));
  Place a_place, b_place;
  a_place.at = row_coords;
  a_place.at.push_back({ka, cat("(", ka, " < ", k, ")")});
  if (folded) {
    a_place.flat = cat(rm, " * ", k, " + ", ka);
    a_place.flat_mask = cat(m_ok, " & (", ka, " < ", k, ")");
    a_place.of = left;
  }
  b_place.at = linear ? std::vector<Coord>{} : batch;
  Coord kc{kb, cat("(", kb, " < ", k, ")")}, nc{rn, n_ok};
  b_place.at.push_back(by_n ? nc : kc);
  b_place.at.push_back(by_n ? kc : nc);
  bool raw = plain(file, index, x) && plain(file, index, y) && graph[x].type == graph[y].type;
  std::string a = tile_of(kernel, x, a_place, raw, "a_tile"), b = tile_of(kernel, y, b_place, raw, "b_tile");
  kernel.line(dot_line(file.style, graph[x].type, a, b, raw));
  kernel.close();
  Place out;
  out.at = row_coords;
  out.at.push_back(nc);
  out.of = node.shape;
  if (folded || simple) {
    out.flat = cat(rm, " * ", n, " + ", rn);
    out.flat_mask = m_ok + " & " + n_ok;
  }
  if (simple) {
    kernel.head("off", std::exchange(out.flat, "off"));
    kernel.head("mask", std::exchange(out.flat_mask, "mask"));
  }
  std::string result = "acc";
  if (node.operands.size() > 2) {
    kernel.comment("bias");
    Place bias;
    bias.at = {nc};
    result = kernel.result("acc", cat("acc + ", kernel.value(node.operands[2], bias)));
  }
  kernel.set(plan.anchor, result);
  store_all(kernel, plan, out, node.shape);
  std::string tiles_m = cat("triton.cdiv(", shape_text({rows}), ", ", tile, ")"),
              tiles_n = cat("triton.cdiv(", shape_text({columns}), ", ", tile, ")");
  std::string grid = file.style.flat_programs ? cat(tiles_m, " * ", tiles_n) : cat(tiles_m, ", ", tiles_n);
  if (batched) grid += ", " + shape_text({product(lead)});
  launch(kernel, cat("(", grid, file.style.flat_programs && !batched ? ",)" : ")"), host, file.style.warps ? 4 : 0);
  return kernel.text();
}

// -------------------------------------------------------------------------------------------------------- convolutions

std::string direct_conv(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& node = file.plan.graph[plan.anchor];
  const Shape& shape = node.shape;
  const Shape& from = file.plan.graph[node.operands[0]].shape;
  const Shape& weights = file.plan.graph[node.operands[1]].shape;
  KernelText kernel(file, index, kernel_name(file, plan, "conv_kernel"));
  std::string block = kernel.constant(block_name(file.style), cat(file.style.block));
  std::string out = host_name(file, plan.stores[0]);
  std::string n = kernel.size("n_elements", out + ".numel()");
  kernel.head("off", cat("tl.program_id(0) * ", block, " + tl.arange(0, ", block, ")"));
  kernel.head("mask", cat("off < ", n));
  Place place;
  place.of = shape;
  place.at = kernel.take_apart("off", shape, "mask");
  place.flat = "off";
  place.flat_mask = "mask";
  bool depthwise = node.ints.at("depthwise") != 0;
  int64_t window = node.ints.at("kernel"), stride = node.ints.at("stride"), padding = node.ints.at("padding");
  size_t spatial = shape.size() - 2;
  kernel.line(cat("acc = tl.zeros((", block, ",), dtype=tl.float32)"));
  Coord channel = place.at[1];
  size_t loops = 0;
  if (!depthwise) {
    kernel.open(cat("for ci in range(0, ", kernel.size(from[1]), "):"));
    channel = {"ci", ""};
    ++loops;
  }
  std::string ok = "mask";
  Place source, weight;
  source.at = {place.at[0], channel};
  weight.at = {place.at[1], depthwise ? Coord{} : channel};
  std::vector<std::string> taps = spatial == 2 ? std::vector<std::string>{"kh", "kw"} : std::vector<std::string>{"kw"};
  if (window > 1) {
    for (size_t s = 0; s < spatial; ++s, ++loops)
      kernel.open(cat("for ", taps[s], " in tl.static_range(0, ", window, "):"));
  }
  bool edges = false;
  for (size_t s = 0; s < spatial; ++s) {
    std::string at = place.at[s + 2].text;
    if (stride > 1) at += cat(" * ", stride);
    if (window > 1) at += " + " + taps[s];
    if (padding) at += cat(" - ", padding);
    std::string name = at == place.at[s + 2].text ? at : kernel.assign(spatial == 2 && s == 0 ? "ih" : "iw", at);
    if (padding) {
      ok += cat(" & (", name, " >= 0) & (", name, " < ", kernel.size(from[s + 2]), ")");
      edges = true;
    }
    source.at.push_back({name, "mask"});
    weight.at.push_back({window > 1 ? taps[s] : "0", ""});
  }
  if (edges) {
    kernel.line("ok = " + ok);
    for (Coord& coord : source.at) coord.mask = "ok";
  }
  // The weight of one tap and channel: a vector of the output channels.
  std::string v = kernel.value(node.operands[0], source);
  Place tap = weight;
  std::string offset;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].is_one()) continue;
    offset = offset.empty() ? tap.at[i].text : cat("(", offset, ") * ", kernel.size(weights[i]), " + ", tap.at[i].text);
  }
  std::string w = kernel.assign("weight", kernel.load(node.operands[1], offset, "mask"));
  kernel.line(cat("acc += ", v, " * ", w));
  for (size_t i = 0; i < loops; ++i) kernel.close();
  std::string result = "acc";
  if (node.ints.at("bias")) {
    Place bias;
    bias.at = {place.at[1]};
    result = kernel.assign("acc", cat("acc + ", kernel.value(node.operands[2], bias)));
  }
  kernel.set(plan.anchor, result);
  store_all(kernel, plan, place, shape);
  launch(kernel, cat("(triton.cdiv(", out, ".numel(), ", file.style.block, "),)"), host, file.style.warps ? 4 : 0);
  return kernel.text();
}

// Pixels x output channels, summed over taps and input channels with tl.dot.
std::string implicit_gemm_conv(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const TensorGraph& graph = file.plan.graph;
  const Node& node = graph[plan.anchor];
  const Shape& shape = node.shape;
  const Shape& from = graph[node.operands[0]].shape;
  KernelText kernel(file, index, kernel_name(file, plan, "conv_kernel"));
  int64_t window = node.ints.at("kernel"), stride = node.ints.at("stride"), padding = node.ints.at("padding");
  size_t spatial = shape.size() - 2;
  int64_t taps = spatial == 2 ? window * window : window;
  std::string bm = kernel.constant("BM", cat(file.style.tile * 2)), bn = kernel.constant("BN", "16"),
              bk = kernel.constant("BK", "16");
  Shape pixels = shape;
  pixels.erase(pixels.begin() + 1);
  std::string count = kernel.size("n_pixels", shape_text({product(pixels)})), channels = kernel.size(shape[1]);
  std::string depth = kernel.size("depth", taps == 1 ? shape_text({from[1]}) : cat(from[1].text, " * ", taps));
  std::string p = kernel.fresh("pixel"), co = kernel.fresh("co");
  kernel.head(p, cat("(tl.program_id(0) * ", bm, " + tl.arange(0, ", bm, "))[:, None]"));
  kernel.head(co, cat("(tl.program_id(1) * ", bn, " + tl.arange(0, ", bn, "))[None, :]"));
  std::string p_ok = cat("(", p, " < ", count, ")"), c_ok = cat("(", co, " < ", channels, ")");
  auto coords = kernel.take_apart(p, pixels, p_ok);
  kernel.line(cat("acc = tl.zeros((", bm, ", ", bn, "), dtype=tl.float32)"));
  kernel.open(cat("for k0 in range(0, ", depth, ", ", bk, "):"));
  std::string kk = kernel.assign("kk", cat("k0 + tl.arange(0, ", bk, ")"));
  std::string ka = kernel.assign("ka", kk + "[None, :]"), kb = kernel.assign("kb", kk + "[:, None]");
  std::string ok = cat(p_ok, " & (", ka, " < ", depth, ")");
  Place source;
  source.at = {coords[0], {taps == 1 ? ka : cat("(", ka, " // ", taps, ")"), "ok"}};
  for (size_t s = 0; s < spatial; ++s) {
    std::string tap = taps == 1      ? ""
                      : spatial == 1 ? cat(" + ", ka, " % ", window)
                      : s == 0       ? cat(" + ", ka, " % ", taps, " // ", window)
                                     : cat(" + ", ka, " % ", window);
    std::string at =
        coords[s + 1].text + (stride > 1 ? cat(" * ", stride) : "") + tap + (padding ? cat(" - ", padding) : "");
    std::string name = kernel.assign(spatial == 2 && s == 0 ? "ih" : "iw", at);
    if (padding) ok += cat(" & (", name, " >= 0) & (", name, " < ", kernel.size(from[s + 2]), ")");
    source.at.push_back({name, "ok"});
  }
  for (Coord& coord : source.at) coord.mask = "ok";
  kernel.line("ok = " + ok);
  bool raw = plain(file, index, node.operands[0]);
  std::string a = tile_of(kernel, node.operands[0], source, raw, "a_tile");
  std::string text =
      kernel.load(node.operands[1], cat(co, " * ", depth, " + ", kb), cat(c_ok, " & (", kb, " < ", depth, ")"));
  if (raw) text = replace_all(text, ".to(tl.float32)", "");
  std::string b = kernel.assign("b_tile", text);
  kernel.line(dot_line(file.style, graph[node.operands[0]].type, a, b, raw));
  kernel.close();
  Place out;
  out.at = {coords[0], {co, c_ok}};
  out.at.insert(out.at.end(), coords.begin() + 1, coords.end());
  if (shape[0].is_one()) {  // The batch has no coordinate of its own; the pixel's mask must still be there.
    for (size_t i = 2; i < out.at.size(); ++i) out.at[i].mask = p_ok;
  }
  std::string result = "acc";
  if (node.ints.at("bias")) {
    Place bias;
    bias.at = {{co, c_ok}};
    result = kernel.assign("acc", cat("acc + ", kernel.value(node.operands[2], bias)));
  }
  kernel.set(plan.anchor, result);
  store_all(kernel, plan, out, shape);
  launch(kernel,
         cat("(triton.cdiv(", shape_text({product(pixels)}), ", ", file.style.tile * 2, "), triton.cdiv(",
             shape_text({shape[1]}), ", 16))"),
         host);
  return kernel.text();
}

}  // namespace tritonrl::graphs
