// SPDX-License-Identifier: Apache-2.0
// The writer of matrix products.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

bool in_memory(const FileText& file, int kernel, int id) {
  int home = file.plan.home[static_cast<size_t>(id)];
  return file.plan.graph[id].kind != Node::Kind::kCompute || (home >= 0 && home < kernel);
}

std::string dot_line(const Style& style, Type type, const std::string& a, const std::string& b, bool raw) {
  if (style.tf32 || (raw && is_half(type))) return cat("acc = tl.dot(", a, ", ", b, ", acc)");
  return cat("acc = tl.dot(", a, ", ", b, ", acc, input_precision=\"ieee\")");
}

// The tile of an operand: as it lies in memory where it can be, else computed and masked.
std::string tile_of(KernelText& kernel, int id, const Place& place, bool raw, const std::string& stem) {
  const Node& node = kernel.graph()[id];
  std::string mask = KernelText::mask_of(node.shape, place);
  if (in_memory(kernel.file(), kernel.kernel(), id)) {
    std::string text = kernel.load(id, kernel.offset_of(node.shape, place), mask);
    if (raw && is_half(node.type)) text = replace_all(text, ".to(tl.float32)", "");
    return kernel.assign(stem, text);
  }
  std::string v = kernel.value(id, place);
  return kernel.assign(stem, cat("tl.where(", mask, ", ", v, ", 0.0)"));
}

std::string gemm_kernel(FileText& file, int index, std::vector<std::string>& host) {
  const KernelPlan& plan = file.plan.kernels[static_cast<size_t>(index)];
  const TensorGraph& graph = file.plan.graph;
  const Node& node = graph[plan.anchor];
  int x = node.operands[0], y = node.operands[1];
  const Shape& left = graph[x].shape;
  auto is = [&](const char* name) { return node.ints.count(name) && node.ints.at(name); };
  bool one_matrix = node.op->name == "linear" || is("shared"), by_m = is("left_transposed");
  bool by_n = node.op->name == "linear" || is("transposed");
  KernelText kernel(file, index, kernel_name(file, plan, "matmul_kernel"));
  size_t rank = node.shape.size();
  Shape lead(node.shape.begin(), node.shape.end() - 2);
  bool folded = one_matrix && rank >= 3;  // Rows of all batches are one long dimension.
  Shape row_dims(node.shape.begin(), node.shape.end() - 1);
  Dim rows = folded ? product(row_dims) : node.shape[rank - 2], columns = node.shape[rank - 1],
      inner = by_m ? left[rank - 2] : left.back();
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
    kernel.head("pid_b", cat("tl.program_id(", file.style.flat_programs ? 1 : 2, ")"));
    batch = kernel.take_apart("pid_b", lead, "");
  } else if (!folded) {
    batch.resize(lead.size());
  }
  std::vector<Coord> row_coords = folded ? kernel.take_apart(rm, row_dims, m_ok) : batch;
  if (!folded) row_coords.push_back({rm, m_ok});
  kernel.line(cat("acc = tl.zeros((", bm, ", ", bn, "), dtype=tl.float32)"));
  const std::string step = simple ? kernel.fresh("k0") : "k0";
  kernel.open(cat("for ", step, " in range(0, ", k, ", ", bk, "):"));
  std::string ka = kernel.assign("ka", cat("(", step, " + ", rk, ")[None, :]"));
  std::string kb = kernel.assign("kb", cat("(", step, " + ", rk, ")[:, None]"));
  Place a_place, b_place;
  a_place.at = row_coords;
  a_place.at.insert(a_place.at.end() - (by_m ? 1 : 0), {ka, cat("(", ka, " < ", k, ")")});
  if (folded) {
    a_place.flat = cat(rm, " * ", k, " + ", ka);
    a_place.flat_mask = cat(m_ok, " & (", ka, " < ", k, ")");
    a_place.of = left;
  }
  b_place.at = one_matrix ? std::vector<Coord>{} : batch;
  Coord kc{kb, cat("(", kb, " < ", k, ")")}, nc{rn, n_ok};
  b_place.at.push_back(by_n ? nc : kc);
  b_place.at.push_back(by_n ? kc : nc);
  bool raw = in_memory(file, index, x) && in_memory(file, index, y) && graph[x].type == graph[y].type;
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
  const int from = file.plan.from[static_cast<size_t>(plan.anchor)];
  const std::string owner = from >= 0 && file.style.read_modules && !file.naming.owners.empty() &&
                                    node.op->name == "linear" &&
                                    file.naming.modules[static_cast<size_t>(from)].find("bias=") != std::string::npos
                                ? file.naming.owners[static_cast<size_t>(from)]
                                : "";
  if (!owner.empty()) {
    kernel.module_bias(owner, "acc", nc.text, nc.mask);
  } else if (node.operands.size() > 2) {
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

}  // namespace tritonrl::graphs
