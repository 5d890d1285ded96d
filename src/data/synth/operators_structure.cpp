// SPDX-License-Identifier: Apache-2.0
// Norms, losses, pools, matrix products, convolutions and movement; and, at the end, what joined the table later.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

using In = const double*;
using Row = std::vector<double>;

Operator made(const char* family, const char* name, Work work, Build build, const char* torch, const char* triton,
              int64_t weight) {
  Operator op;
  op.family = family;
  op.name = name;
  op.work = work;
  op.build = build;
  op.torch = torch;
  op.triton = triton;
  op.weight = weight;
  return op;
}

Operator norm(const char* name, Build build, const char* triton, std::vector<std::vector<double>> eps, int64_t weight) {
  Operator op = made("norm", name, Work::kRow, build, "{self}({x})", triton, weight);
  op.attributes = std::move(eps);
  return op;
}

// Pointwise, then reduced over everything.
Operator loss(const char* name, const char* torch, const char* triton, double (*value)(In, In),
              std::vector<std::vector<double>> attributes = {{}}) {
  Operator op = made("loss", name, Work::kPointwise, build_loss, torch, triton, 6);
  op.arity = 2;
  op.then_mean = true;
  op.value = value;
  op.attributes = std::move(attributes);
  return op;
}

Operator class_loss(const char* name, const char* torch, const char* fill, const char* triton,
                    Row (*row)(Row, const double*), std::vector<std::vector<double>> attributes = {{}}) {
  Operator op = made("loss", name, triton[0] ? Work::kRow : Work::kOther, build_class_loss, torch, triton, 8);
  op.arity = 2;
  op.fill = fill;
  op.then_mean = true;
  op.scalar_rows = true;
  op.row = row;
  op.attributes = std::move(attributes);
  return op;
}

// max_pool1d to avg_pool3d.
Operator pool(const std::string& name) {
  bool maximum = name[0] == 'm';
  Operator op =
      made("pool", name.c_str(), Work::kWindow, build_pool, "", maximum ? "tl.maximum(acc, v)" : "acc + v", 10);
  op.torch = cat("F.", name, "({x}, {window})");
  op.forms = {"{self}({x})"};
  op.fill = maximum ? "float(\"-inf\")" : "0.0";
  op.finish = maximum ? "acc" : "acc / {taps}";
  return op;
}

// adaptive_avg_pool1d to adaptive_max_pool3d, to one place.
Operator adaptive_pool(const std::string& name, Row (*row)(Row, const double*)) {
  bool maximum = name.find("max") != std::string::npos;
  Operator op = made("pool", name.c_str(), Work::kRow, build_adaptive_pool, "",
                     maximum ? "tl.max({m}{ax})" : "tl.sum({m}{ax}) / {n}", 5);
  op.torch = cat("F.", name, "({x}, {window})");
  op.forms = {"{self}({x})"};
  op.fill = maximum ? "float(\"-inf\")" : "0.0";
  op.scalar_rows = true;
  op.row = row;
  return op;
}

// For style varied alone, which new operators do not change plain tasks.
Operator varied(Operator op) {
  op.varied_only = true;
  return op;
}

Operator matrix_product(const char* name, const char* torch, std::vector<std::string> forms) {
  Operator op = made("matmul", name, Work::kGemm, build_product, torch, "dot", 8);
  op.arity = 2;
  op.forms = std::move(forms);
  return varied(std::move(op));
}

// One number of each row, written in several ways.
Operator picked(const char* name, const char* torch, std::vector<std::string> forms, const char* fill,
                const char* triton, Row (*row)(Row, const double*)) {
  Operator op = made("reduction", name, Work::kRow, build_reduce, torch, triton, 8);
  op.forms = std::move(forms);
  op.fill = fill;
  op.scalar_rows = true;
  op.row = row;
  return varied(std::move(op));
}

Operator move(const char* name, const char* torch, int64_t weight, int arity = 1) {
  Operator op = made("movement", name, Work::kMove, build_move, torch, "", weight);
  op.arity = arity;
  return op;
}

constexpr char kDeviation[] =
    "{t} = tl.sum({m}{ax}) / {n}\n{t2} = tl.where({mask}, {m} - {t}, 0.0)\n"
    "{t2} / tl.sqrt(tl.sum({t2} * {t2}{ax}) / {n} + {a})";

Operator doubled() {
  Operator op = made("elementwise", "double", Work::kPointwise, build_pointwise, "{x} + {x}", "{x} + {x}", 2);
  op.value = [](In v, In) { return 2 * v[0]; };
  return varied(std::move(op));
}

// x divided by a number of its row, spelled out.
Operator divided_rows(const char* name, const char* torch, const char* triton, std::vector<std::vector<double>> eps,
                      Row (*row)(Row, const double*)) {
  Operator op = made("norm", name, Work::kRow, build_row, torch, triton, 5);
  op.attributes = std::move(eps);
  op.row = row;
  return varied(std::move(op));
}

Row averaged(Row r, const double*) {
  return {std::accumulate(r.begin(), r.end(), 0.0) / static_cast<double>(r.size())};
}
Row largest(Row r, const double*) { return {*std::max_element(r.begin(), r.end())}; }
Row smallest(Row r, const double*) { return {*std::min_element(r.begin(), r.end())}; }

// Joined the table after style plain was fixed.
std::vector<Operator> later_operators() {
  std::vector<Operator> ops = {
      made("conv", "conv3d", Work::kConv, build_conv, "{self}({x})", "dot", 16),
      made("conv", "conv_transpose1d", Work::kConv, build_conv, "{self}({x})", "dot", 8),
      made("conv", "conv_transpose2d", Work::kConv, build_conv, "{self}({x})", "dot", 18),
      made("conv", "conv_transpose3d", Work::kConv, build_conv, "{self}({x})", "dot", 20),
      pool("max_pool3d"),
      pool("avg_pool3d"),
      adaptive_pool("adaptive_avg_pool1d", averaged),
      adaptive_pool("adaptive_avg_pool2d", averaged),
      adaptive_pool("adaptive_avg_pool3d", averaged),
      adaptive_pool("adaptive_max_pool1d", largest),
      adaptive_pool("adaptive_max_pool2d", largest),
      adaptive_pool("adaptive_max_pool3d", largest),
      picked("max_dim", "torch.max({x}{over})[0]", {"torch.max({x}{over}).values", "{x}.max({of})[0]"},
             "float(\"-inf\")", "tl.max({m}{ax})", largest),
      picked("min_dim", "torch.min({x}{over})[0]", {"torch.min({x}{over}).values", "{x}.min({of}).values"},
             "float(\"inf\")", "tl.min({m}{ax})", smallest),
      picked("prod", "torch.prod({x}{over})", {"{x}.prod({of})"}, "1.0", "tl.reduce({m}{ax}, combine_fn=multiplied)",
             [](Row r, const double*) {
               return Row{std::accumulate(r.begin(), r.end(), 1.0, [](double a, double b) { return a * b; })};
             }),
      picked("spatial_mean", "torch.mean({x}{over})", {"{x}.mean({of})"}, "0.0", "tl.sum({m}{ax}) / {n}", averaged),
      picked("spatial_sum", "torch.sum({x}{over})", {"{x}.sum({of})"}, "0.0", "tl.sum({m}{ax})",
             [](Row r, const double*) { return Row{std::accumulate(r.begin(), r.end(), 0.0)}; }),
      varied(made("elementwise", "dropout", Work::kPointwise, build_dropout, "F.dropout({x}, p={p}, training=False)",
                  "{x}", 6)),
      matrix_product("matmul_tn", "torch.matmul({x}.T, {y})", {"{x}.T @ {y}", "torch.mm({x}.t(), {y})"}),
      matrix_product("matmul_nt", "torch.matmul({x}, {y}.T)", {"{x} @ {y}.T", "torch.einsum(\"mk,nk->mn\", {x}, {y})"}),
      matrix_product("matmul_tt", "torch.matmul({x}.T, {y}.T)",
                     {"{x}.T @ {y}.T", "torch.einsum(\"km,nk->mn\", {x}, {y})"}),
      matrix_product("batched_matmul", "torch.matmul({x}, {y})",
                     {"{x} @ {y}", "torch.einsum(\"{equation}\", {x}, {y})"}),
      matrix_product("batched_matmul_nt", "torch.matmul({x}, {y}.transpose(-2, -1))",
                     {"{x} @ {y}.mT", "torch.einsum(\"{equation}\", {x}, {y})"}),
      matrix_product("shared_matmul", "torch.matmul({x}, {y})",
                     {"{x} @ {y}", "torch.einsum(\"{equation}\", {x}, {y})"}),
      varied(made("matmul", "diag_matmul", Work::kMove, build_diagonal, "torch.diag({y}) @ {x}", "", 6)),
      varied(made("matmul", "scaled_dot_product_attention", Work::kGemm, build_attention,
                  "F.scaled_dot_product_attention({x}, {y}, {z}, scale={a})", "dot", 8)),
      made("loss", "triplet_margin_loss", Work::kRow, build_triplet_loss,
           "F.triplet_margin_loss({x}, {y}, {z}, margin={a}{reduction})",
           "{t} = tl.where({mask}, {m} - {m2} + 1e-6, 0.0)\n{t2} = tl.where({mask}, {m} - {m3} + 1e-6, 0.0)\n"
           "tl.maximum(tl.sqrt(tl.sum({t} * {t}{ax})) - tl.sqrt(tl.sum({t2} * {t2}{ax})) + {a}, 0.0)",
           6),
      move("squeeze", "{x}.squeeze({dim})", 6),
      doubled(),
      picked(
          "frobenius_norm", "torch.norm({x}, p=\"fro\")",
          {"torch.norm({x}, p=\"fro\")", "torch.norm({x})", "{x}.norm()", "torch.linalg.norm({x})"}, "0.0",
          "tl.sqrt(tl.sum({m} * {m}{ax}))",
          [](Row r, const double*) { return Row{std::sqrt(std::inner_product(r.begin(), r.end(), r.begin(), 0.0))}; }),
      divided_rows("mean_abs_normalize", "{x} / torch.mean(torch.abs({x}), dim={dim}, keepdim=True)",
                   "{m} / (tl.sum(tl.abs({m}){ax}) / {n})", {{}},
                   [](Row r, const double*) {
                     double total = 0;
                     for (double v : r) total += std::abs(v) / static_cast<double>(r.size());
                     for (double& v : r) v /= std::max(total, 1e-12);
                     return r;
                   }),
      divided_rows("rms_normalize", "{x} / torch.sqrt(torch.mean({x} ** 2, dim={dim}, keepdim=True) + {a})",
                   "{m} / tl.sqrt(tl.sum({m} * {m}{ax}) / {n} + {a})", {{1e-5}, {1e-6}, {1e-8}},
                   [](Row r, const double* a) {
                     double total = a[0];
                     for (double v : r) total += v * v / static_cast<double>(r.size());
                     for (double& v : r) v /= std::sqrt(total);
                     return r;
                   }),
  };
  for (Operator& op : ops) {
    if (op.name == "frobenius_norm") op.weight = 0;  // Drawn with the division by it.
    if (op.name == "prod") op.domain = Domain::kPositive;
    if (op.name == "spatial_sum") op.growth = 1;
    if (op.name == "diag_matmul") op.arity = 2;
    if (op.name == "scaled_dot_product_attention") {
      op.arity = 3;
      op.attributes = {{0.125}, {0.25}, {0.1}};
    }
    if (op.name == "dropout") op.forms = {"{self}({x})"};
    if (op.name == "triplet_margin_loss") {
      op.arity = 3;
      op.then_mean = op.scalar_rows = true;
      op.attributes = {{1.0}, {0.5}, {2.0}};
      op.forms = {"{self}({x}, {y}, {z})"};
    }
  }
  return ops;
}

}  // namespace

std::vector<Operator> structure_operators() {
  std::vector<Operator> ops = {
      norm("layer_norm", build_layer_norm, kDeviation, {{1e-5}, {1e-6}, {1e-3}}, 14),
      norm("rms_norm", build_layer_norm, "{m} / tl.sqrt(tl.sum({m} * {m}{ax}) / {n} + {a})", {{1e-6}, {1e-5}}, 10),
      norm("group_norm", build_group_norm, kDeviation, {{1e-5}}, 12),
      norm("instance_norm", build_group_norm, kDeviation, {{1e-5}}, 7),
      made("norm", "batch_norm", Work::kPointwise, build_batch_norm, "{self}({x})",
           "({x} - {p0}) / tl.sqrt({p1} + {a}) * {p2} + {p3}", 10),
      made("elementwise", "prelu", Work::kPointwise, build_prelu, "{self}({x})", "tl.where({x} > 0, {x}, {p0} * {x})",
           4),
      loss("mse_loss", "F.mse_loss({x}, {y}{reduction})", "({x} - {y}) * ({x} - {y})",
           [](In v, In) { return (v[0] - v[1]) * (v[0] - v[1]); }),
      loss("l1_loss", "F.l1_loss({x}, {y}{reduction})", "tl.abs({x} - {y})",
           [](In v, In) { return std::abs(v[0] - v[1]); }),
      loss("smooth_l1_loss", "F.smooth_l1_loss({x}, {y}, beta={a}{reduction})",
           "tl.where(tl.abs({x} - {y}) < {a}, 0.5 * ({x} - {y}) * ({x} - {y}) / {a}, tl.abs({x} - {y}) - 0.5 * {a})",
           [](In v, In a) {
             double d = std::abs(v[0] - v[1]);
             return d < a[0] ? 0.5 * d * d / a[0] : d - 0.5 * a[0];
           },
           {{1.0}, {0.5}, {2.0}}),
      loss("huber_loss", "F.huber_loss({x}, {y}, delta={a}{reduction})",
           "tl.where(tl.abs({x} - {y}) < {a}, 0.5 * ({x} - {y}) * ({x} - {y}), {a} * (tl.abs({x} - {y}) - 0.5 * {a}))",
           [](In v, In a) {
             double d = std::abs(v[0] - v[1]);
             return d < a[0] ? 0.5 * d * d : a[0] * (d - 0.5 * a[0]);
           },
           {{1.0}, {0.5}, {1.5}}),
      loss("kl_div", "F.kl_div({x}, {y}{reduction})", "{y} * (tl.log({y}) - {x})",
           [](In v, In) { return v[1] * (std::log(v[1]) - v[0]); }),
      loss("hinge_loss", "torch.{hinge}(torch.clamp({a} - {x} * {y}, min=0.0))", "tl.maximum({a} - {x} * {y}, 0.0)",
           [](In v, In a) { return std::max(a[0] - v[0] * v[1], 0.0); }, {{1.0}, {0.5}}),
      loss("soft_margin_loss", "F.soft_margin_loss({x}, {y}{reduction})", "tl.log(1.0 + tl.exp(-{x} * {y}))",
           [](In v, In) { return std::log1p(std::exp(-v[0] * v[1])); }),
      loss("binary_cross_entropy", "F.binary_cross_entropy({x}, {y}{reduction})",
           "-({y} * tl.log({x}) + (1.0 - {y}) * tl.log(1.0 - {x}))",
           [](In v, In) { return -(v[1] * std::log(v[0]) + (1 - v[1]) * std::log(1 - v[0])); }),
      loss("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits({x}, {y}{reduction})",
           "tl.maximum({x}, 0.0) - {x} * {y} + tl.log(1.0 + tl.exp(-tl.abs({x})))",
           [](In v, In) { return std::max(v[0], 0.0) - v[0] * v[1] + std::log1p(std::exp(-std::abs(v[0]))); }),
      loss("poisson_nll_loss", "F.poisson_nll_loss({x}, {y}{reduction})", "tl.exp({x}) - {y} * {x}",
           [](In v, In) { return std::exp(v[0]) - v[1] * v[0]; }),
      class_loss("cross_entropy", "F.cross_entropy({x}, {y}{reduction})", "float(\"-inf\")",
                 "{t} = tl.max({m}{ax})\n{t2} = {t} + tl.log(tl.sum(tl.exp({m} - {t}){ax}))\n"
                 "{t2} - tl.sum(tl.where({i} == {y}, {x}, 0.0){ax})",
                 [](Row r, const double*) { return Row{log_sum(r) - r[0]}; }),
      class_loss("nll_loss", "F.nll_loss({x}, {y}{reduction})", "0.0", "-tl.sum(tl.where({i} == {y}, {m}, 0.0){ax})",
                 [](Row r, const double*) { return Row{-r[0]}; }),
      class_loss("multi_margin_loss", "F.multi_margin_loss({x}, {y}{reduction})", "0.0",
                 "{t} = tl.sum(tl.where({i} == {y}, {m}, 0.0){ax})\n"
                 "{t2} = tl.where({mask} & ({i} != {y}), tl.maximum(1.0 - {t} + {m}, 0.0), 0.0)\n"
                 "tl.sum({t2}{ax}) / {n}",
                 [](Row r, const double*) {
                   double out = 0;
                   for (size_t i = 1; i < r.size(); ++i) out += std::max(1 - r[0] + r[i], 0.0);
                   return Row{out / static_cast<double>(r.size())};
                 }),
      class_loss("cross_entropy_smoothed", "F.cross_entropy({x}, {y}, label_smoothing={a}{reduction})", "0.0",
                 "{t} = tl.max(tl.where({mask}, {m}, float(\"-inf\")){ax})\n"
                 "{t2} = {t} + tl.log(tl.sum(tl.where({mask}, tl.exp({m} - {t}), 0.0){ax}))\n"
                 "{t2} - (1.0 - {a}) * tl.sum(tl.where({i} == {y}, {m}, 0.0){ax}) - {a} * tl.sum({m}{ax}) / {n}",
                 [](Row r, const double*) { return Row{log_sum(r) - r[0]}; }, {{0.1}, {0.2}}),
      pool("max_pool2d"),
      pool("avg_pool2d"),
      pool("max_pool1d"),
      pool("avg_pool1d"),
      made("matmul", "matmul", Work::kGemm, build_matmul, "torch.matmul({x}, {y})", "dot", 20),
      made("matmul", "bmm", Work::kGemm, build_matmul, "torch.bmm({x}, {y})", "dot", 14),
      made("matmul", "linear", Work::kGemm, build_linear, "{self}({x})", "dot", 24),
      made("conv", "conv2d", Work::kConv, build_conv, "{self}({x})", "dot", 20),
      made("conv", "conv1d", Work::kConv, build_conv, "{self}({x})", "dot", 14),
      made("conv", "depthwise_conv2d", Work::kConv, build_conv, "{self}({x})", "dot", 8),
      made("conv", "depthwise_conv1d", Work::kConv, build_conv, "{self}({x})", "dot", 6),
      made("conv", "pointwise_conv2d", Work::kConv, build_conv, "{self}({x})", "dot", 8),
      move("transpose", "{x}.transpose({dim0}, {dim1})", 6),
      move("permute", "{x}.permute({order})", 5),
      move("flip", "torch.flip({x}, dims=[{dim}])", 5),
      move("roll", "torch.roll({x}, shifts={shift}, dims={dim})", 5),
      move("flatten", "torch.flatten({x}, start_dim={from})", 4),
      move("unsqueeze", "{x}.unsqueeze({dim})", 3),
      move("expand", "{x}.expand({sizes})", 10),
      move("repeat_interleave", "torch.repeat_interleave({x}, {repeats}, dim={dim})", 4),
      move("cat", "torch.cat([{x}, {y}], dim={dim})", 6, 2),
      move("stack", "torch.stack([{x}, {y}], dim={dim})", 5, 2),
      move("slice", "{x}[{slice}]", 5),
      move("narrow", "torch.narrow({x}, {dim}, {start}, {length})", 4),
      move("chunk_glu", "torch.chunk({x}, 2, dim={dim})[{part}]", 4),
      move("pad", "F.pad({x}, ({left}, {right}))", 5),
      move("tril", "torch.tril({x}, diagonal={diagonal})", 4),
      move("triu", "torch.triu({x}, diagonal={diagonal})", 3),
      move("index_select", "torch.index_select({x}, {dim}, {y})", 5, 2),
      move("gather", "torch.gather({x}, {dim}, {y})", 5, 2),
      move("embedding", "{self}({x})", 0),  // Drawn as the beginning of a graph of its own.
  };
  for (Operator& op : ops) {
    if (op.name == "poisson_nll_loss") op.domain = Domain::kSmall;
    if (op.name == "matmul" || op.name == "bmm") op.arity = 2;
  }
  for (Operator& op : later_operators()) ops.push_back(std::move(op));
  return ops;
}

}  // namespace tritonrl::graphs
