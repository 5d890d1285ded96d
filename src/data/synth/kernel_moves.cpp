// SPDX-License-Identifier: Apache-2.0
// Index rules: where the operand of a movement is read for an element of its result.
#include <cstdlib>

#include "base/text.h"
#include "data/synth/kernel_text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

std::string KernelText::moved(int id, const Place& place) {
  const Node& node = graph()[id];
  const std::string& name = node.op->name;
  const Shape& from = graph()[node.operands[0]].shape;
  Place to;
  to.at = place.at;
  auto dim = [&](size_t i = 0) { return static_cast<size_t>(node.dims[i]); };
  auto with_mask = [](const std::string& a, const std::string& b) {
    return a.empty() ? b : b.empty() ? a : a + " & " + b;
  };
  if (name == "transpose" || name == "permute") {
    for (size_t i = 0; i < node.dims.size(); ++i) to.at[dim(i)] = place.at[i];
  } else if (name == "flip") {
    const Coord& c = place.at[dim()];
    to.at[dim()] = {cat("(", size(from[dim()]), " - 1 - ", c.text, ")"), c.mask};
  } else if (name == "roll") {
    const Coord& c = place.at[dim()];
    std::string n = size(from[dim()]);
    int64_t shift = node.ints.at("shift");
    to.at[dim()] = {cat("((", c.text, shift > 0 ? " - " : " + ", std::abs(shift), " + ", n, ") % ", n, ")"), c.mask};
  } else if (name == "view") {
    to.at.assign(from.size(), Coord());
    for (const ViewGroup& group : view_groups(from, node.shape)) {
      Coord c = place.at[group.to[0]];
      for (size_t g = 1; g < group.to.size(); ++g) {
        const Coord& next = place.at[group.to[g]];
        c.text = cat("(", c.text, " * ", size(node.shape[group.to[g]]), " + ", next.text, ")");
        if (c.mask.find(next.mask) == std::string::npos) c.mask = with_mask(c.mask, next.mask);
      }
      std::string after;
      for (size_t r = group.from.size(); r-- > 0;) {
        std::string divided = after.empty() ? c.text : cat("(", c.text, " // (", after, "))");
        std::string n = group.from.size() == 1 ? "" : size(from[group.from[r]]);
        to.at[group.from[r]] = {r == 0 ? divided : cat("(", divided, " % ", n, ")"), c.mask};
        after = after.empty() ? n : cat(n, " * ", after);
      }
    }
    if (!place.flat.empty() && place.of == node.shape) {
      to.flat = place.flat;
      to.flat_mask = place.flat_mask;
      to.of = from;
    }
  } else if (name == "part") {
    const Coord& c = place.at[dim()];
    to.at[dim()] = {cat("(", c.text, " + ", size(node.module_dims.at(0)), ")"), c.mask};
  } else if (name == "diag_embed") {
    std::string r = place.at[0].text, c = place.at[1].text;
    Place diagonal;
    diagonal.at = {{r, mask_of(node.shape, place)}};
    std::string x = value(node.operands[0], diagonal);
    return assign("diagonal", cat("tl.where(", r, " == ", c, ", ", x, ", 0.0)"));
  } else if (name == "causal_mask") {
    std::string x = value(node.operands[0], place), r = place.at[dim(0)].text, c = place.at[dim(1)].text;
    return assign("kept", cat("tl.where(", c, " <= ", r, ", ", x, ", float(\"-inf\"))"));
  } else if (name == "flatten") {
    size_t first = static_cast<size_t>(node.ints.at("from"));
    Coord c = place.at[first];
    Shape tail(from.begin() + static_cast<std::ptrdiff_t>(first), from.end());
    to.at.resize(first);
    std::string after;
    std::vector<Coord> parts(tail.size());
    for (size_t r = tail.size(); r-- > 0;) {
      std::string divided = after.empty() ? c.text : cat("(", c.text, " // (", after, "))");
      parts[r] = {r == 0 ? divided : cat("(", divided, " % ", size(tail[r]), ")"), c.mask};
      after = after.empty() ? size(tail[r]) : cat(size(tail[r]), " * ", after);
    }
    to.at.insert(to.at.end(), parts.begin(), parts.end());
    if (!place.flat.empty() && place.of == node.shape) {
      to.flat = place.flat;
      to.flat_mask = place.flat_mask;
      to.of = from;
    }
  } else if (name == "unsqueeze" || name == "squeeze") {
    auto at = to.at.begin() + static_cast<std::ptrdiff_t>(dim());
    if (name == "squeeze") {
      to.at.insert(at, Coord());
    } else {
      to.at.erase(at);
    }
    if (!place.flat.empty() && place.of == node.shape) {
      to.flat = place.flat;
      to.flat_mask = place.flat_mask;
      to.of = from;
    }
  } else if (name == "expand") {
    to.at[dim()] = {};
  } else if (name == "repeat_interleave") {
    const Coord& c = place.at[dim()];
    to.at[dim()] = {cat("(", c.text, " // ", node.ints.at("repeats"), ")"), c.mask};
  } else if (name == "slice" || name == "narrow") {
    const Coord& c = place.at[dim()];
    int64_t start = node.ints.at("start");
    if (start > 0) to.at[dim()] = {cat("(", c.text, " + ", start, ")"), c.mask};
  } else if (name == "chunk_glu") {
    const Coord& c = place.at[dim()];
    if (node.ints.at("part")) to.at[dim()] = {cat("(", c.text, " + ", size(node.shape[dim()]), ")"), c.mask};
  } else if (name == "index_select" || name == "gather") {
    Place where;
    if (name == "gather") {
      where = place;
    } else {
      where.at = {place.at[dim()]};
    }
    std::string picked = value(node.operands[1], where);
    to.at[dim()] = {picked, place.at[dim()].mask};
  } else if (name == "embedding") {
    Place where;
    where.at.assign(place.at.begin(), place.at.end() - 1);
    std::string token = value(node.operands[0], where);
    Place cell;
    cell.at = {{token, mask_of(graph()[node.operands[0]].shape, where)}, place.at.back()};
    return value(node.operands[1], cell);
  } else if (name == "diag_matmul") {
    Place diagonal;
    diagonal.at = {place.at[0]};
    std::string x = value(node.operands[0], place), factor = value(node.operands[1], diagonal);
    return assign("scaled", cat(factor, " * ", x));
  } else if (name == "stack" || name == "cat") {
    size_t d = dim();
    Coord c = place.at[d];
    Place first = to, second = to;
    std::string left;
    if (name == "stack") {
      left = cat(c.text, " == 0");
      first.at.erase(first.at.begin() + static_cast<std::ptrdiff_t>(d));
      second.at.erase(second.at.begin() + static_cast<std::ptrdiff_t>(d));
      std::string x = value(node.operands[0], first), y = value(node.operands[1], second);
      return assign("both", cat("tl.where(", left, ", ", x, ", ", y, ")"));
    }
    std::string n = size(from[d]);
    left = cat("(", c.text, " < ", n, ")");
    first.at[d].mask = with_mask(c.mask, left);
    second.at[d] = {cat("(", c.text, " - ", n, ")"), with_mask(c.mask, cat("(", c.text, " >= ", n, ")"))};
    std::string x = value(node.operands[0], first), y = value(node.operands[1], second);
    return assign("both", cat("tl.where(", left, ", ", x, ", ", y, ")"));
  } else if (name == "pad") {
    size_t d = dim();
    Coord c = place.at[d];
    int64_t left = node.ints.at("left");
    std::string shifted = left ? cat("(", c.text, " - ", left, ")") : c.text;
    std::string inside = left ? cat("(", c.text, " >= ", left, ") & (", c.text, " < ", size(from[d]), " + ", left, ")")
                              : cat("(", c.text, " < ", size(from[d]), ")");
    to.at[d] = {shifted, with_mask(c.mask, inside)};
    std::string x = value(node.operands[0], to);
    return assign("padded", cat("tl.where(", inside, ", ", x, ", 0.0)"));
  } else if (name == "tril" || name == "triu") {
    std::string x = value(node.operands[0], place);
    int64_t diagonal = node.ints.at("diagonal");
    std::string r = place.at[dim(0)].text, c = place.at[dim(1)].text;
    std::string edge = diagonal == 0 ? r : diagonal > 0 ? cat(r, " + ", diagonal) : cat(r, " - ", -diagonal);
    return assign("kept", cat("tl.where(", c, name == "tril" ? " <= " : " >= ", edge, ", ", x, ", 0.0)"));
  } else {
    CHECK(false) << "no index rule for " << name;
  }
  return value(node.operands[0], to);
}

}  // namespace tritonrl::graphs
