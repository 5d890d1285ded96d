// SPDX-License-Identifier: Apache-2.0
// GraphReader: symbols for the sizes of what was recorded, and expressions in them.
#include <algorithm>

#include "base/text.h"
#include "verify/solve/graph_reader.h"

namespace tritonrl {

using graphs::Dim;

SizesOf GraphReader::sizes(int64_t id, size_t dim) const {
  SizesOf out;
  for (size_t r = 0; r < traces_.size(); ++r) out.push_back(value(id, r).shape.at(dim));
  return out;
}

SizesOf GraphReader::result_sizes(size_t dim, size_t out) const { return sizes(step().outs.at(out), dim); }
SizesOf GraphReader::operand_sizes(size_t at, size_t dim) const {
  require(has(at), "a tensor is missing");
  return sizes(argument(at)->number, dim);
}

bool GraphReader::holds(const Dim& dim, const SizesOf& sizes) const {
  return dim.full == sizes[0] && dim.tiny == sizes[sizes.size() > 1 ? 1 : 0];
}

void GraphReader::learn(const Dim& dim, const SizesOf& sizes) {
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; }) || !holds(dim, sizes)) return;
  for (const auto& [known, what] : known_) {
    if (known == sizes) return;
  }
  known_.emplace_back(sizes, dim);
}

void GraphReader::learn_result(size_t dim, const Dim& formula) { learn(formula, result_sizes(dim)); }

Dim GraphReader::symbol(const SizesOf& sizes, size_t dim, size_t rank, bool parameter) {
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; })) return {};
  for (const auto& [known, what] : known_) {
    if (known == sizes) return what;
  }
  static const std::vector<std::vector<std::string>> kNames = {
      {"N"}, {"M", "N"}, {"B", "T", "D"}, {"B", "C", "H", "W"}, {"B", "C", "D", "H", "W"}};
  std::string stem = parameter ? "F" : rank <= kNames.size() ? kNames[rank - 1][dim] : "S";
  std::string name = stem;
  for (int i = 2; graph_.graph.symbols.count(name); ++i) name = cat(stem, i);
  Dim out{name, sizes[0], sizes[sizes.size() > 1 ? 1 : 0]};
  graph_.graph.symbols[name] = out;
  known_.emplace_back(sizes, out);
  return out;
}

Dim GraphReader::dim(const SizesOf& sizes) {
  bool constant = std::all_of(sizes.begin(), sizes.end(), [&](int64_t n) { return n == sizes[0]; });
  if (constant && sizes[0] == 1) return {};
  for (const auto& [known, what] : known_) {
    if (known == sizes) return what;
  }
  // What one recording says may be a coincidence: but for products, the number itself is as good a guess.
  auto found = constant && sizes.size() > 1 ? graphs::number(sizes[0]) : expression(sizes);
  if (!found && constant) found = graphs::number(sizes[0]);
  if (!found) throw Unfit{"sizes", cat("aten.", name_, ": a size that follows from no other: ", sizes[0])};
  known_.emplace_back(sizes, *found);
  return *found;
}

std::optional<Dim> GraphReader::expression(const SizesOf& sizes) const {
  auto given_by = [&](auto&& size_in) {
    for (size_t r = 0; r < sizes.size(); ++r) {
      if (size_in(r) != sizes[r]) return false;
    }
    return true;
  };
  for (const auto& [a, dim_a] : known_) {
    for (const auto& [b, dim_b] : known_) {
      if (given_by([&](size_t r) { return a[r] * b[r]; })) return graphs::product({dim_a, dim_b});
    }
  }
  bool sure = sizes.size() > 1;
  for (const auto& [a, dim_a] : known_) {
    int64_t factor = sizes[0] / a[0], divisor = a[0] / std::max<int64_t>(1, sizes[0]), more = sizes[0] - a[0];
    if (!sure) break;
    if (factor > 1 && given_by([&](size_t r) { return factor * a[r]; })) return scaled_size(dim_a, factor, 0, 1);
    if (divisor > 1 && given_by([&](size_t r) { return a[r] % divisor ? -1 : a[r] / divisor; }))
      return scaled_size(dim_a, 1, 0, divisor);
    if (given_by([&](size_t r) { return a[r] + more; })) return scaled_size(dim_a, 1, more, 1);
  }
  for (const auto& [a, dim_a] : known_) {
    for (const auto& [b, dim_b] : known_) {
      for (const auto& [c, dim_c] : known_) {
        if (given_by([&](size_t r) { return a[r] * b[r] * c[r]; })) return graphs::product({dim_a, dim_b, dim_c});
      }
    }
  }
  for (const auto& [a, dim_a] : known_) {
    for (const auto& [b, dim_b] : known_) {
      if (!sure) return std::nullopt;
      if (given_by([&](size_t r) { return a[r] + b[r]; })) return graphs::plus(dim_a, dim_b);
      int64_t divisor = a[0] * b[0] / std::max<int64_t>(1, sizes[0]), factor = sizes[0] / (a[0] * b[0]);
      Dim both = graphs::product({dim_a, dim_b});
      if (divisor > 1 && given_by([&](size_t r) { return a[r] * b[r] % divisor ? -1 : a[r] * b[r] / divisor; }))
        return scaled_size(both, 1, 0, divisor);
      if (factor > 1 && given_by([&](size_t r) { return factor * a[r] * b[r]; }))
        return scaled_size(both, factor, 0, 1);
    }
  }
  return std::nullopt;
}

}  // namespace tritonrl
