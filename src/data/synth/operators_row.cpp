// SPDX-License-Identifier: Apache-2.0
// Row operators: reductions, softmax kinds, scans.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/synth/draft.h"

namespace tritonrl::graphs {

namespace {

using Row = std::vector<double>;
using Attributes = const double*;

double sum(const Row& r) { return std::accumulate(r.begin(), r.end(), 0.0); }
double mean(const Row& r) { return sum(r) / static_cast<double>(r.size()); }
double top(const Row& r) { return *std::max_element(r.begin(), r.end()); }
double bottom(const Row& r) { return *std::min_element(r.begin(), r.end()); }
double squares(const Row& r) { return std::inner_product(r.begin(), r.end(), r.begin(), 0.0); }
double absolutes(const Row& r) {
  return std::accumulate(r.begin(), r.end(), 0.0, [](double a, double v) { return a + std::abs(v); });
}
double variance(const Row& r) {
  double m = mean(r), out = 0;
  for (double v : r) out += (v - m) * (v - m);
  return out / static_cast<double>(r.size());
}
Row scaled(Row r, double factor) {
  for (double& v : r) v *= factor;
  return r;
}

Operator reduction(const char* name, const char* torch, const char* fill, const char* triton,
                   Row (*row)(Row, Attributes), double growth = 0, Domain domain = Domain::kAny) {
  Operator op;
  op.name = name;
  op.family = "reduction";
  op.work = Work::kRow;
  op.build = build_reduce;
  op.torch = torch;
  op.triton = triton;
  op.fill = fill;
  op.scalar_rows = true;
  op.row = row;
  op.growth = growth;
  op.domain = domain;
  op.weight = 8;
  return op;
}

Operator along(const char* family, const char* name, const char* torch, const char* fill, const char* triton,
               Row (*row)(Row, Attributes), int64_t weight) {
  Operator op = reduction(name, torch, fill, triton, row);
  op.family = family;
  op.work = *triton ? Work::kRow : Work::kOther;
  op.build = build_row;
  op.scalar_rows = false;
  op.weight = weight;
  return op;
}

constexpr char kLow[] = "float(\"-inf\")";
constexpr char kHigh[] = "float(\"inf\")";

}  // namespace

double log_sum(const Row& r) {
  double m = top(r), out = 0;
  for (double v : r) out += std::exp(v - m);
  return m + std::log(out);
}

std::vector<Operator> row_operators() {
  std::vector<Operator> ops = {
      reduction(
          "sum", "torch.sum({x}{over})", "0.0", "tl.sum({m}{ax})", [](Row r, Attributes) { return Row{sum(r)}; }, 1),
      reduction("mean", "torch.mean({x}{over})", "0.0", "tl.sum({m}{ax}) / {n}",
                [](Row r, Attributes) { return Row{mean(r)}; }),
      reduction("amax", "torch.amax({x}{over})", kLow, "tl.max({m}{ax})",
                [](Row r, Attributes) { return Row{top(r)}; }),
      reduction("amin", "torch.amin({x}{over})", kHigh, "tl.min({m}{ax})",
                [](Row r, Attributes) { return Row{bottom(r)}; }),
      reduction("var", "torch.var({x}{over}, unbiased=False)", "0.0",
                "{t} = tl.sum({m}{ax}) / {n}\n{t2} = tl.where({mask}, {m} - {t}, 0.0)\ntl.sum({t2} * {t2}{ax}) / {n}",
                [](Row r, Attributes) { return Row{variance(r)}; }),
      reduction("std", "torch.std({x}{over})", "0.0",
                "{t} = tl.sum({m}{ax}) / {n}\n{t2} = tl.where({mask}, {m} - {t}, 0.0)\n"
                "tl.sqrt(tl.sum({t2} * {t2}{ax}) / ({n} - 1))",
                [](Row r, Attributes) { return Row{std::sqrt(variance(r))}; }),
      reduction("logsumexp", "torch.logsumexp({x}{over})", kLow,
                "{t} = tl.max({m}{ax})\n{t} + tl.log(tl.sum(tl.exp({m} - {t}){ax}))",
                [](Row r, Attributes) { return Row{log_sum(r)}; }),
      reduction(
          "l1_norm", "torch.norm({x}, p=1{over})", "0.0", "tl.sum(tl.abs({m}){ax})",
          [](Row r, Attributes) { return Row{absolutes(r)}; }, 1),
      reduction(
          "l2_norm", "torch.norm({x}, p=2{over})", "0.0", "tl.sqrt(tl.sum({m} * {m}{ax}))",
          [](Row r, Attributes) { return Row{std::sqrt(squares(r))}; }, 0.5),
      reduction(
          "argmax", "torch.argmax({x}{over})", kLow, "tl.argmax({m}{ax})",
          [](Row r, Attributes) { return Row{static_cast<double>(std::max_element(r.begin(), r.end()) - r.begin())}; }),
      reduction(
          "argmin", "torch.argmin({x}{over})", kHigh, "tl.argmin({m}{ax})",
          [](Row r, Attributes) { return Row{static_cast<double>(std::min_element(r.begin(), r.end()) - r.begin())}; }),
      reduction("cosine_similarity", "F.cosine_similarity({x}, {y}{over})", "0.0",
                "{t} = tl.sqrt(tl.sum({m} * {m}{ax}))\n{t2} = tl.sqrt(tl.sum({m2} * {m2}{ax}))\n"
                "tl.sum({m} * {m2}{ax}) / (tl.maximum({t}, 1e-8) * tl.maximum({t2}, 1e-8))",
                [](Row r, Attributes) { return Row{r[0] / (std::sqrt(static_cast<double>(r.size())) * 2)}; }),
      reduction(
          "pairwise_dot", "torch.sum({x} * {y}{over})", "0.0", "tl.sum({m} * {m2}{ax})",
          [](Row r, Attributes) { return Row{r[0]}; }, 0.5),
      along(
          "softmax", "softmax", "torch.softmax({x}, dim={dim})", kLow,
          "{t} = tl.exp({m} - tl.max({m}{ax}))\n{t} / tl.sum({t}{ax})",
          [](Row r, Attributes) {
            double m = log_sum(r);
            for (double& v : r) v = std::exp(v - m);
            return r;
          },
          12),
      along(
          "softmax", "softmin", "F.softmin({x}, dim={dim})", kHigh,
          "{t} = tl.exp(tl.min({m}{ax}) - {m})\n{t} / tl.sum({t}{ax})",
          [](Row r, Attributes) {
            double m = log_sum(scaled(r, -1));
            for (double& v : r) v = std::exp(-v - m);
            return r;
          },
          5),
      along(
          "softmax", "log_softmax", "F.log_softmax({x}, dim={dim})", kLow,
          "{t} = {m} - tl.max({m}{ax})\n{t} - tl.log(tl.sum(tl.exp({t}){ax}))",
          [](Row r, Attributes) {
            double m = log_sum(r);
            for (double& v : r) v -= m;
            return r;
          },
          8),
      along(
          "norm", "normalize", "F.normalize({x}, dim={dim})", "0.0",
          "{t} = tl.sqrt(tl.sum({m} * {m}{ax}))\n{m} / tl.maximum({t}, 1e-12)",
          [](Row r, Attributes) { return scaled(r, 1 / std::max(std::sqrt(squares(r)), 1e-12)); }, 6),
      along(
          "norm", "normalize_l1", "F.normalize({x}, p=1.0, dim={dim})", "0.0",
          "{m} / tl.maximum(tl.sum(tl.abs({m}){ax}), 1e-12)",
          [](Row r, Attributes) { return scaled(r, 1 / std::max(absolutes(r), 1e-12)); }, 4),
      along(
          "norm", "center", "{x} - {x}.mean(dim={dim}, keepdim=True)", "0.0", "{m} - tl.sum({m}{ax}) / {n}",
          [](Row r, Attributes) {
            double m = mean(r);
            for (double& v : r) v -= m;
            return r;
          },
          4),
      along(
          "scan", "cumsum", "torch.cumsum({x}, dim={dim})", "0.0", "tl.cumsum({m}, {axis})",
          [](Row r, Attributes) {
            std::partial_sum(r.begin(), r.end(), r.begin());
            return r;
          },
          12),
      along(
          "scan", "reverse_cumsum", "torch.flip(torch.cumsum(torch.flip({x}, dims=[{dim}]), dim={dim}), dims=[{dim}])",
          "0.0", "tl.cumsum({m}, {axis}, reverse=True)",
          [](Row r, Attributes) {
            std::partial_sum(r.rbegin(), r.rend(), r.rbegin());
            return r;
          },
          8),
      along(
          "scan", "exclusive_cumsum", "torch.cumsum({x}, dim={dim}) - {x}", "0.0", "tl.cumsum({m}, {axis}) - {m}",
          [](Row r, Attributes) {
            double before = 0;
            for (double& v : r) {
              double here = v;
              v = before;
              before += here;
            }
            return r;
          },
          6),
      along(
          "scan", "cumprod", "torch.cumprod({x}, dim={dim})", "1.0", "tl.cumprod({m}, {axis})",
          [](Row r, Attributes) {
            std::partial_sum(r.begin(), r.end(), r.begin(), [](double a, double b) { return a * b; });
            return r;
          },
          8),
      along(
          "scan", "cummax", "torch.cummax({x}, dim={dim})[0]", kLow,
          "tl.associative_scan({m}, {axis}, combine_fn=larger)",
          [](Row r, Attributes) {
            std::partial_sum(r.begin(), r.end(), r.begin(), [](double a, double b) { return std::max(a, b); });
            return r;
          },
          6),
      along(
          "scan", "cummin", "torch.cummin({x}, dim={dim})[0]", kHigh,
          "tl.associative_scan({m}, {axis}, combine_fn=smaller)",
          [](Row r, Attributes) {
            std::partial_sum(r.begin(), r.end(), r.begin(), [](double a, double b) { return std::min(a, b); });
            return r;
          },
          5),
      along(
          "scan", "logcumsumexp", "torch.logcumsumexp({x}, dim={dim})", "0.0", "",
          [](Row r, Attributes) {
            double running = -1e300;
            for (double& v : r) v = running = std::max(running, v) + std::log1p(std::exp(-std::abs(running - v)));
            return r;
          },
          3),
      along(
          "scan", "sort", "torch.sort({x}, dim={dim})[0]", "0.0", "",
          [](Row r, Attributes) {
            std::sort(r.begin(), r.end());
            return r;
          },
          2),
  };
  for (Operator& op : ops) {
    if (op.name == "cosine_similarity" || op.name == "pairwise_dot") op.arity = 2;
    if (op.name == "cosine_similarity") op.family = "loss";
    // Products of positive factors near 1 only; what was drawn from [0.5, 1.5) is.
    if (op.name == "cumprod") op.domain = Domain::kPositive;
    if (op.name == "argmax" || op.name == "argmin" || op.name == "sort") op.jumps = true;
  }
  return ops;
}

}  // namespace tritonrl::graphs
