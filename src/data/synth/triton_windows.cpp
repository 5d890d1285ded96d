// SPDX-License-Identifier: Apache-2.0
// Writers of kernels that look through a window: pools and convolutions, transposed or not, of one to three dimensions.
#include <algorithm>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

constexpr int64_t kUnrolledTaps = 9;  // Longer windows become loops, or compiling takes longer than running.

bool is_transposed(const Node& node) { return node.ints.count("transposed") && node.ints.at("transposed"); }

// "_d", "_h", "_w": dimensions are named from the last one.
std::string axis_name(size_t dim, size_t dims) { return cat("_", "dhw"[dim + 3 - dims]); }

// One program a block of the result's elements.
struct FlatGrid {
  std::string block, grid;
  Place place;
};

FlatGrid flat_grid(KernelText& kernel, const KernelPlan& plan) {
  FlatGrid out;
  const Style& style = kernel.style();
  out.block = kernel.constant(block_name(style), cat(style.block));
  std::string count = host_name(kernel.file(), plan.stores[0]) + ".numel()";
  std::string n = kernel.size("n_elements", count);
  kernel.head("off", cat("tl.program_id(0) * ", out.block, " + tl.arange(0, ", out.block, ")"));
  kernel.head("mask", cat("off < ", n));
  out.place.of = kernel.graph()[plan.anchor].shape;
  out.place.at = kernel.take_apart("off", out.place.of, "mask");
  out.place.flat = "off";
  out.place.flat_mask = "mask";
  out.grid = cat("(triton.cdiv(", count, ", ", style.block, "),)");
  return out;
}

// The window along one dimension: numbers, or constants of the kernel that the wrapper reads from the module.
struct Axis {
  std::string kernel, stride, padding, dilation;
};
Axis axis_of(KernelText& kernel, int id, size_t dim) {
  const Node& node = kernel.graph()[id];
  const Window& w = node.windows[dim];
  auto read = kernel.file().windows.find(id);
  if (read == kernel.file().windows.end()) return {cat(w.kernel), cat(w.stride), cat(w.padding), cat(w.dilation)};
  size_t letter = dim + 3 - node.windows.size();
  auto constant = [&](const char* upper, const char* lower) {
    return kernel.fixed_size(cat(upper, "DHW"[letter]), cat(lower, "dhw"[letter], read -> second.suffix));
  };
  std::string size = constant("K", "k"), stride = constant("S", "s"), padding = constant("P", "p");
  return {size, stride, padding, read->second.dilation ? constant("D", "d") : "1"};
}

// Elements of the window, as a factor; "1" where nothing is read.
std::string all_taps(KernelText& kernel, int id, size_t from = 0) {
  const Node& node = kernel.graph()[id];
  std::string out;
  int64_t count = 1;
  for (size_t s = from; s < node.windows.size(); ++s) {
    out += cat(out.empty() ? "" : " * ", axis_of(kernel, id, s).kernel);
    count *= node.windows[s].kernel;
  }
  if (!kernel.file().windows.count(id)) return cat(count);
  return out.find('*') == std::string::npos ? out : "(" + out + ")";
}

// The input position that tap `tap` ("" = the only one) of output position `at` reads along dimension `dim`. What must
// hold for it to lie inside joins `ok`.
std::string read_position(KernelText& kernel, int id, size_t dim, const std::string& at, const std::string& tap,
                          std::string& ok) {
  const Node& node = kernel.graph()[id];
  const Axis w = axis_of(kernel, id, dim);
  std::string axis = axis_name(dim, node.windows.size());
  std::string size = kernel.size(kernel.graph()[node.operands[0]].shape[dim + node.unswept()]);
  std::string step = w.dilation == "1" ? "" : cat(" * ", w.dilation);
  bool padded = w.padding != "0", strided = w.stride != "1";
  if (is_transposed(node)) {
    std::string text = cat(at, padded ? cat(" + ", w.padding) : "", tap.empty() ? "" : cat(" - ", tap, step));
    std::string name = text == at ? at : kernel.assign("from" + axis, text);
    ok += cat(" & (", name, " >= 0)");
    if (strided) {
      ok += cat(" & (", name, " % ", w.stride, " == 0)");
      name = kernel.assign("in" + axis, cat(name, " // ", w.stride));
    }
    ok += cat(" & (", name, " < ", size, ")");
    return name;
  }
  std::string text = cat(at, strided ? cat(" * ", w.stride) : "", tap.empty() ? "" : cat(" + ", tap, step),
                         padded ? cat(" - ", w.padding) : "");
  std::string name = text == at ? at : kernel.assign("in" + axis, text);
  if (padded) ok += cat(" & (", name, " >= 0) & (", name, " < ", size, ")");
  return name;
}

// A transposed convolution without dilation: of a window's taps, only one in `stride` meets an input at a given place
// of the result. Tap r + stride * j does, for r = (place + padding) % stride; input (place + padding) // stride - j is
// met.
bool steps_by_stride(const FileText& file, int id) {
  const Node& node = file.plan.graph[id];
  auto read = file.windows.find(id);
  bool dilated = read != file.windows.end() ? read->second.dilation
                                            : std::any_of(node.windows.begin(), node.windows.end(),
                                                          [](const Window& w) { return w.dilation != 1; });
  return file.style.settled && is_transposed(node) && !dilated;
}

// Opens a loop for each dimension over the taps that meet an input, and adds the positions they meet to `source`.
// Returns the taps.
std::vector<std::string> open_meeting_taps(KernelText& kernel, int id, const std::vector<Coord>& out, size_t& loops,
                                           Place& source) {
  const Node& node = kernel.graph()[id];
  const size_t dims = node.windows.size();
  std::vector<std::string> taps;
  std::string ok = out[0].mask;
  for (size_t s = 0; s < dims; ++s) {
    const Axis w = axis_of(kernel, id, s);
    const std::string axis = axis_name(s, dims), letter = axis.substr(1),
                      padded = cat("(", out[s].text, " + ", w.padding, ")");
    kernel.open(cat("for j", letter, " in range(0, (", w.kernel, " + ", w.stride, " - 1) // ", w.stride, "):"));
    ++loops;
    taps.push_back(kernel.assign("k" + axis, cat(padded, " % ", w.stride, " + j", letter, " * ", w.stride)));
    std::string in = kernel.assign("in" + axis, cat(padded, " // ", w.stride, " - j", letter));
    std::string size = kernel.size(kernel.graph()[node.operands[0]].shape[s + 2]);
    ok += cat(" & (", taps.back(), " < ", w.kernel, ") & (", in, " >= 0) & (", in, " < ", size, ")");
    source.at.push_back({in, "ok"});
  }
  kernel.line("ok = " + ok);
  for (Coord& coord : source.at) coord.mask = "ok";
  return taps;
}

// Opens a loop for each dimension whose window has several taps; returns the names of the taps.
std::vector<std::string> open_taps(KernelText& kernel, int id, size_t& loops) {
  const Node& node = kernel.graph()[id];
  std::vector<std::string> taps;
  const char* range = node.taps() <= kUnrolledTaps && !kernel.file().windows.count(id) ? "tl.static_range" : "range";
  for (size_t s = 0; s < node.windows.size(); ++s) {
    const Axis axis = axis_of(kernel, id, s);
    taps.emplace_back(axis.kernel == "1" ? "" : cat("k", axis_name(s, node.windows.size())[1]));
    if (taps.back().empty()) continue;
    kernel.open(cat("for ", taps.back(), " in ", range, "(0, ", axis.kernel, "):"));
    ++loops;
  }
  return taps;
}

// The positions of all taps as coordinates of the input, behind batch and channel.
void read_positions(KernelText& kernel, int id, const std::vector<Coord>& out, const std::vector<std::string>& taps,
                    Place& source) {
  std::string ok = out[0].mask;
  for (size_t s = 0; s < taps.size(); ++s) {
    source.at.push_back({read_position(kernel, id, s, out[s].text, taps[s], ok), out[0].mask});
  }
  if (ok == out[0].mask) return;
  kernel.line("ok = " + ok);
  for (Coord& coord : source.at) coord.mask = "ok";
}

std::string with_bias(KernelText& kernel, int id, const Coord& channel) {
  const Node& node = kernel.graph()[id];
  if (auto read = kernel.file().windows.find(id); read != kernel.file().windows.end() && read->second.bias)
    return kernel.module_bias(read->second.owner, "acc", channel.text, channel.mask);
  if (!node.ints.at("bias")) return "acc";
  Place bias;
  bias.at = {channel};
  return kernel.assign("acc", cat("acc + ", kernel.value(node.operands[2], bias)));
}

Dim share(const Dim& dim, int64_t groups, const std::string& by = "") {
  if (groups <= 1 && by.empty()) return dim;
  int64_t count = groups == 0 ? dim.full : groups, tiny = groups == 0 ? dim.tiny : groups;
  return {cat("(", dim.text, " // ", by.empty() ? cat(groups) : by, ")"), dim.full / count, dim.tiny / tiny};
}

// Each element sums its own window over the input channels of its group.
std::string direct_conv(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const TensorGraph& graph = file.plan.graph;
  const Node& node = graph[plan.anchor];
  const Shape& from = graph[node.operands[0]].shape;
  KernelText kernel(file, index, kernel_name(file, plan, "conv_kernel"));
  FlatGrid flat = flat_grid(kernel, plan);
  const std::vector<Coord>& at = flat.place.at;
  int64_t groups = node.ints.at("groups");  // 0: each channel by itself.
  auto read = file.windows.find(plan.anchor);
  std::string by = read != file.windows.end() && read->second.groups ? read->second.owner + ".groups" : "";
  Coord in = {"ci", "mask"}, weight_in = {"ci", ""}, weight_out = {at[1].text, ""};
  const Dim out_share = share(node.shape[1], groups, by), in_share = share(from[1], groups, by);
  Shape weights = graph[node.operands[1]].shape;
  if (!by.empty()) {
    kernel.size("per_out", shape_text({out_share}));
    kernel.size("per_in", shape_text({in_share}));
    weights[1] = is_transposed(node) ? out_share : in_share;
  }
  if (groups > 1 || !by.empty()) {
    std::string per_out = kernel.size(out_share), per_in = kernel.size(in_share);
    std::string first = kernel.fresh("first");
    kernel.head(first, cat(at[1].text, " // ", per_out, " * ", per_in));
    in.text = cat("(", first, " + ci)");
    if (is_transposed(node)) weight_out.text = cat("(", at[1].text, " % ", per_out, ")");
  }
  kernel.line(cat("acc = tl.zeros((", flat.block, ",), dtype=tl.float32)"));
  size_t loops = 0;
  if (groups == 0 && by.empty()) {
    in = at[1];
    weight_in = {};
  } else {
    kernel.open(cat("for ci in range(0, ", kernel.size(in_share), "):"));
    ++loops;
  }
  Place source, weight;
  source.at = {at[0], in};
  const bool steps = steps_by_stride(file, plan.anchor);
  const std::vector<Coord> positions(at.begin() + 2, at.end());
  auto taps =
      steps ? open_meeting_taps(kernel, plan.anchor, positions, loops, source) : open_taps(kernel, plan.anchor, loops);
  if (!steps) read_positions(kernel, plan.anchor, positions, taps, source);
  if (read != file.windows.end()) {
    for (size_t s = 0; s < taps.size(); ++s)
      weights[s + 2] = {axis_of(kernel, plan.anchor, s).kernel, node.windows[s].kernel, node.windows[s].kernel};
  }
  weight.at =
      is_transposed(node) ? std::vector<Coord>{{in.text, ""}, weight_out} : std::vector<Coord>{weight_out, weight_in};
  for (const std::string& tap : taps) weight.at.push_back({tap.empty() ? "0" : tap, ""});
  std::string v = kernel.value(node.operands[0], source);
  std::string w =
      kernel.assign("weight", kernel.load(node.operands[1], kernel.offset_of(weights, weight), steps ? "ok" : "mask"));
  kernel.line(cat("acc += ", v, " * ", w));
  for (size_t i = 0; i < loops; ++i) kernel.close();
  kernel.set(plan.anchor, with_bias(kernel, plan.anchor, at[1]));
  store_all(kernel, plan, flat.place, node.shape);
  launch(kernel, flat.grid, host, file.style.warps ? 4 : 0);
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
  auto read = file.windows.find(plan.anchor);
  std::string bm = kernel.constant("BM", cat(file.style.conv_rows())),
              bn = kernel.constant("BN", cat(file.style.conv_columns)),
              bk = kernel.constant("BK", cat(file.style.conv_depth));
  Shape pixels = shape;
  pixels.erase(pixels.begin() + 1);
  std::string count = kernel.size("n_pixels", shape_text({product(pixels)})), channels = kernel.size(shape[1]);
  const std::string taps = all_taps(kernel, plan.anchor);
  std::string in_host = taps;  // As the wrapper says it.
  if (read != file.windows.end()) {
    in_host.clear();
    for (size_t s = 0; s < node.windows.size(); ++s)
      in_host += cat(s ? " * k" : "k", "dhw"[s + 3 - node.windows.size()], read -> second.suffix);
  }
  std::string depth = kernel.size("k_total", taps == "1" ? shape_text({from[1]}) : cat(from[1].text, " * ", in_host));
  std::string p = kernel.fresh("pixel"), co = kernel.fresh("co");
  kernel.head(p, cat("(tl.program_id(0) * ", bm, " + tl.arange(0, ", bm, "))[:, None]"));
  kernel.head(co, cat("(tl.program_id(1) * ", bn, " + tl.arange(0, ", bn, "))[None, :]"));
  std::string p_ok = cat("(", p, " < ", count, ")"), c_ok = cat("(", co, " < ", channels, ")");
  auto coords = kernel.take_apart(p, pixels, p_ok);
  for (size_t i = 1; i < coords.size(); ++i) coords[i].mask = p_ok;  // Of a batch of one, too.
  kernel.line(cat("acc = tl.zeros((", bm, ", ", bn, "), dtype=tl.float32)"));
  kernel.open(cat("for k0 in range(0, ", depth, ", ", bk, "):"));
  std::string kk = kernel.assign("kk", cat("k0 + tl.arange(0, ", bk, ")"));
  std::string ka = kernel.assign("ka", kk + "[None, :]"), kb = kernel.assign("kb", kk + "[:, None]");
  std::vector<std::string> tap;
  for (size_t d = 0; d < node.windows.size(); ++d) {
    std::string size = axis_of(kernel, plan.anchor, d).kernel, behind = "1";
    if (d + 1 < node.windows.size()) behind = all_taps(kernel, plan.anchor, d + 1);
    std::string text = cat(ka, " % ", all_taps(kernel, plan.anchor, d));
    if (behind != "1") text = cat("(", text, ") // ", behind);
    tap.push_back(size == "1" ? "" : cat("(", text, ")"));
  }
  Place source;
  std::string inside = cat(p_ok, " & (", ka, " < ", depth, ")");
  source.at = {{coords[0].text, inside}, {taps == "1" ? ka : cat("(", ka, " // ", taps, ")"), inside}};
  std::vector<Coord> out_at(coords.begin() + 1, coords.end());
  for (Coord& coord : out_at) coord.mask = inside;
  read_positions(kernel, plan.anchor, out_at, tap, source);
  bool raw = in_memory(file, index, node.operands[0]);
  std::string a = tile_of(kernel, node.operands[0], source, raw, "a_tile");
  std::string offset = cat(co, " * ", depth, " + ", kb);
  if (is_transposed(node)) {
    offset = taps == "1" ? cat(kb, " * ", channels, " + ", co)
                         : cat("(", kb, " // ", taps, " * ", channels, " + ", co, ") * ", taps, " + ", kb, " % ", taps);
  }
  std::string text = kernel.load(node.operands[1], offset, cat(c_ok, " & (", kb, " < ", depth, ")"));
  if (raw) text = replace_all(text, ".to(tl.float32)", "");
  std::string b = kernel.assign("b_tile", text);
  kernel.line(dot_line(file.style, graph[node.operands[0]].type, a, b, raw));
  kernel.close();
  Place out;
  out.at = {coords[0], {co, c_ok}};
  out.at.insert(out.at.end(), coords.begin() + 1, coords.end());
  kernel.set(plan.anchor, with_bias(kernel, plan.anchor, out.at[1]));
  store_all(kernel, plan, out, shape);
  launch(kernel,
         cat("(triton.cdiv(", shape_text({product(pixels)}), ", ", file.style.conv_rows(), "), triton.cdiv(",
             shape_text({shape[1]}), ", ", file.style.conv_columns, "))"),
         host);
  return kernel.text();
}

// The same for a transposed convolution: places of the result that lie a multiple of the stride apart read the same
// taps, so that a tile holds such places only; the third index of the program says which.
std::string phased_gemm_conv(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const TensorGraph& graph = file.plan.graph;
  const Node& node = graph[plan.anchor];
  const Shape& shape = node.shape;
  const Shape& from = graph[node.operands[0]].shape;
  const size_t dims = node.windows.size();
  KernelText kernel(file, index, kernel_name(file, plan, "conv_kernel"));
  for (const char* own : {"steps", "k_total", "p_ok", "c_ok", "nd", "nh", "nw"}) CHECK(kernel.fresh(own) == own);
  auto read = file.windows.find(plan.anchor);
  std::string suffix = read != file.windows.end() ? read->second.suffix : index ? cat(index + 1) : "";
  std::string bm = kernel.constant("BM", cat(file.style.conv_rows())),
              bn = kernel.constant("BN", cat(file.style.conv_columns)),
              bk = kernel.constant("BK", cat(file.style.conv_depth));
  Shape places = {shape[0]};
  std::vector<Axis> axes;
  std::vector<std::string> letters, steps, strides;  // steps: taps that meet an input.
  for (size_t s = 0; s < dims; ++s) {
    const Window& w = node.windows[s];
    axes.push_back(axis_of(kernel, plan.anchor, s));
    letters.push_back(axis_name(s, dims).substr(1));
    const std::string name = cat("q", letters[s], suffix);
    strides.push_back(read != file.windows.end() ? cat("s", letters[s], suffix) : cat(w.stride));
    host.push_back(cat(name, " = triton.cdiv(", shape[s + 2].text, ", ", strides[s], ")"));
    auto up = [&](int64_t size) { return (size + w.stride - 1) / w.stride; };
    places.push_back({name, up(shape[s + 2].full), up(shape[s + 2].tiny)});
    steps.push_back("n" + letters[s]);
    kernel.head(steps[s], cat("(", axes[s].kernel, " + ", axes[s].stride, " - 1) // ", axes[s].stride));
  }
  const std::string count = kernel.size("n_places", shape_text({product(places)})), channels = kernel.size(shape[1]);
  const std::string p = kernel.fresh("place"), co = kernel.fresh("co");
  kernel.head(p, cat("(tl.program_id(0) * ", bm, " + tl.arange(0, ", bm, "))[:, None]"));
  kernel.head(co, cat("(tl.program_id(1) * ", bn, " + tl.arange(0, ", bn, "))[None, :]"));
  kernel.head("steps", join(steps, " * "));
  kernel.head("k_total", cat(kernel.size(from[1]), " * steps"));
  auto coords = kernel.take_apart(p, places, "p_ok");
  std::string phase = "tl.program_id(2)", p_ok = cat("(", p, " < ", count, ")");
  for (size_t s = dims; s-- > 0;) {  // The last dimension's phase varies fastest.
    const std::string& l = letters[s];
    kernel.line(cat("a", l, " = ", phase, s == 0 ? "" : cat(" % ", axes[s].stride)));
    phase = cat(phase, " // ", axes[s].stride);
  }
  for (size_t s = 0; s < dims; ++s) {
    const std::string &l = letters[s], &stride = axes[s].stride;
    kernel.line(cat("r", l, " = (a", l, " + ", axes[s].padding, ") % ", stride));
    kernel.line(cat("o", l, " = ", coords[s + 1].text, " * ", stride, " + a", l));
    p_ok += cat(" & (o", l, " < ", kernel.size(shape[s + 2]), ")");
  }
  kernel.line("p_ok = " + p_ok);
  kernel.line(cat("c_ok = ", co, " < ", channels));
  kernel.line(cat("acc = tl.zeros((", bm, ", ", bn, "), dtype=tl.float32)"));
  kernel.open(cat("for k0 in range(0, k_total, ", bk, "):"));
  std::string kk = kernel.assign("kk", cat("k0 + tl.arange(0, ", bk, ")"));
  std::string ka = kernel.assign("ka", kk + "[None, :]"), kb = kernel.assign("kb", kk + "[:, None]");
  // Step along dimension s of the tap number `k`.
  auto step_of = [&](const std::string& k, size_t s) {
    std::vector<std::string> behind(steps.begin() + static_cast<std::ptrdiff_t>(s) + 1, steps.end());
    std::string text =
        behind.empty() ? k : cat(k, " // ", behind.size() > 1 ? cat("(", join(behind, " * "), ")") : behind[0]);
    return cat(text, " % ", steps[s]);
  };
  Place source;
  source.at = {{coords[0].text, "ok"}, {cat("(", ka, " // steps)"), "ok"}};
  std::string ok = cat("p_ok & (", ka, " < k_total)"), w_ok = cat("c_ok & (", kb, " < k_total)"), tap;
  for (size_t s = 0; s < dims; ++s) {
    const std::string& l = letters[s];
    kernel.line(cat("j", l, " = ", step_of(ka, s)));
    kernel.line(
        cat("i", l, " = ", coords[s + 1].text, " + (a", l, " + ", axes[s].padding, ") // ", axes[s].stride, " - j", l));
    ok += cat(" & (r", l, " + j", l, " * ", axes[s].stride, " < ", axes[s].kernel, ") & (i", l, " >= 0) & (i", l, " < ",
              kernel.size(from[s + 2]), ")");
    source.at.push_back({"i" + l, "ok"});
    kernel.line(cat("k", l, " = r", l, " + ", step_of(kb, s), " * ", axes[s].stride));
    w_ok += cat(" & (k", l, " < ", axes[s].kernel, ")");
    tap = s == 0 ? "k" + l : cat(s > 1 ? cat("(", tap, ")") : tap, " * ", axes[s].kernel, " + k", l);
  }
  kernel.line("ok = " + ok);
  bool raw = in_memory(file, index, node.operands[0]);
  std::string a = tile_of(kernel, node.operands[0], source, raw, "a_tile");
  std::string offset =
      cat("(", kb, " // steps * ", channels, " + ", co, ") * ", all_taps(kernel, plan.anchor), " + ", tap);
  std::string text = kernel.load(node.operands[1], offset, w_ok);
  if (raw) text = replace_all(text, ".to(tl.float32)", "");
  std::string b = kernel.assign("b_tile", text);
  kernel.line(dot_line(file.style, graph[node.operands[0]].type, a, b, raw));
  kernel.close();
  Place out;
  out.at = {{coords[0].text, "p_ok"}, {co, "c_ok"}};
  for (const std::string& l : letters) out.at.push_back({"o" + l, "p_ok"});
  kernel.set(plan.anchor, with_bias(kernel, plan.anchor, out.at[1]));
  store_all(kernel, plan, out, shape);
  launch(kernel,
         cat("(triton.cdiv(", shape_text({product(places)}), ", ", file.style.conv_rows(), "), triton.cdiv(",
             shape_text({shape[1]}), ", ", file.style.conv_columns, "), ", join(strides, " * "), ")"),
         host);
  return kernel.text();
}

}  // namespace

std::string window_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& node = file.plan.graph[plan.anchor];
  KernelText kernel(file, index, kernel_name(file, plan, "pool_kernel"));
  FlatGrid flat = flat_grid(kernel, plan);
  const std::vector<Coord>& at = flat.place.at;
  kernel.line(cat("acc = tl.full((", flat.block, ",), ", node.op->fill, ", tl.float32)"));
  size_t loops = 0;
  auto taps = open_taps(kernel, plan.anchor, loops);
  Place source;
  const auto swept = at.begin() + static_cast<std::ptrdiff_t>(node.unswept());
  source.at = {at.begin(), swept};
  read_positions(kernel, plan.anchor, {swept, at.end()}, taps, source);
  std::string v = kernel.value(node.operands[0], source);
  kernel.line(cat("v = tl.where(", source.at.back().mask, ", ", v, ", ", node.op->fill, ")"));
  kernel.line("acc = " + node.op->triton);
  for (size_t i = 0; i < loops; ++i) kernel.close();
  std::string result = replace_all(node.op->finish, "{taps}", all_taps(kernel, plan.anchor));
  kernel.set(plan.anchor, result == "acc" ? result : kernel.assign("pooled", result));
  store_all(kernel, plan, flat.place, node.shape);
  launch(kernel, flat.grid, host);
  return kernel.text();
}

std::string conv_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const Node& node = file.plan.graph[plan.anchor];
  auto read = file.windows.find(plan.anchor);
  bool grouped = node.ints.at("groups") != 1 || (read != file.windows.end() && read->second.groups);
  Shape pixels = node.shape;
  pixels.erase(pixels.begin() + 1);
  // Tiles of one row or column are none.
  bool tiles =
      !node.shape[1].is_one() && !file.plan.graph[node.operands[0]].shape[1].is_one() && !product(pixels).is_one();
  if (!file.style.implicit_gemm || grouped || !tiles) return direct_conv(file, index, host);
  return steps_by_stride(file, plan.anchor) ? phased_gemm_conv(file, index, host)
                                            : implicit_gemm_conv(file, index, host);
}

}  // namespace tritonrl::graphs
