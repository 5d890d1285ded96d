// SPDX-License-Identifier: Apache-2.0
#include "data/synth/kernel_text.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "data/synth/operators.h"

namespace tritonrl::graphs {

namespace {

constexpr char kUnlessUnused = '\x02';  // Before such lines, while their loop is open.

bool is_identifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

bool is_literal(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
}

bool mentions(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    auto inside = [&](size_t i) {
      return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
    };
    if ((at == 0 || !inside(at - 1)) && !inside(at + name.size())) return true;
  }
  return false;
}

std::string times(const std::string& a, const std::string& b) { return b == "1" ? a : cat(a, " * ", b); }

}  // namespace

KernelText::KernelText(FileText& file, int kernel, std::string name)
    : file_(file), kernel_(kernel), name_(std::move(name)) {
  for (const char* word :
       {"tl",    "triton",     "torch",  "pid",     "off",        "offs",    "mask", "acc",   "row",    "cols",
        "BLOCK", "BLOCK_SIZE", "BM",     "BN",      "BK",         "ROWS",    "k",    "kd",    "kh",     "kw",
        "ci",    "k0",         "v",      "ok",      "if",         "in",      "or",   "is",    "as",     "part",
        "pid_m", "pid_n",      "larger", "smaller", "multiplied", "tiles_n", "id",   "pid_b", "row_ok", "col_ok"}) {
    names_.insert(word);
  }
}

void KernelText::line(const std::string& text) {
  body_ += std::string(static_cast<size_t>(indent_) * 4, ' ') + text + "\n";
}

void KernelText::comment(const std::string& text) {
  if (style().comments) line("# " + text);
}

void KernelText::head(const std::string& name, const std::string& text) { head_.emplace_back(name, text); }

void KernelText::define(const std::string& name, const std::string& text) {
  if (outer_known_.empty()) return head(name, text);
  body_ += kUnlessUnused;
  line(name + " = " + text);
}

void KernelText::open(const std::string& text) {
  line(text);
  ++indent_;
  outer_known_.push_back(known_);
  outer_members_.push_back(members_);
  outer_names_.push_back(names_);
  outer_starts_.push_back(body_.size());
}

void KernelText::close() {
  --indent_;
  known_ = std::move(outer_known_.back());
  outer_known_.pop_back();
  members_ = std::move(outer_members_.back());
  outer_members_.pop_back();
  outer_names_.pop_back();
  std::vector<std::string> lines = split(body_.substr(outer_starts_.back()), '\n');
  std::string kept;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    if (it->empty()) continue;
    const bool defined = (*it)[0] == kUnlessUnused;
    const std::string text = it->substr(defined), name = trim(text).substr(0, trim(text).find(' '));
    if (!defined || mentions(kept, name)) kept = cat(text, "\n", kept);
  }
  body_ = body_.substr(0, outer_starts_.back()) + kept;
  outer_starts_.pop_back();
}

void KernelText::close_pass() {
  std::set<std::string> names = outer_names_.back();
  for (const auto& [name, text] : head_) names.insert(name);
  for (const auto& [node, name] : pointers_) names.insert(name);
  for (const auto& [name, host] : sizes_) names.insert(name);
  names_ = std::move(names);
  close();
}

std::string KernelText::fresh(const std::string& stem) {
  std::string name = stem;
  for (int i = 1; !names_.insert(name).second; ++i) name = cat(stem, i);
  return name;
}

std::string KernelText::assign(const std::string& stem, const std::string& text) {
  std::string name = fresh(stem);
  line(name + " = " + text);
  return name;
}

std::string KernelText::result(const std::string& stem, const std::string& text) {
  if (!style().plain) return assign(stem, text);
  kept_ = keeps_first_input(graph());
  line("x = " + text);
  return "x";
}

std::string KernelText::pointer(int node, bool) {
  for (const auto& [known, name] : pointers_) {
    if (known == node) return name;
  }
  std::string host = host_name(file_, node);
  if (host.rfind("self.", 0) == 0) host = host.substr(style().read_modules ? host.rfind('.') + 1 : 5);
  for (const char* mark : {".", "["}) host = replace_all(host, mark, "_");
  std::string name = fresh(replace_all(host, "]", "") + "_ptr");
  pointers_.emplace_back(node, name);
  return name;
}

std::string KernelText::scratch(const std::string& name) {
  scratches_.push_back(name);
  return name + "_ptr";
}

std::string KernelText::size(const Dim& dim) {
  if (is_literal(dim.text)) return dim.text;
  if (fixed_.count(dim.text)) return dim.text;
  for (const auto& [name, host] : sizes_) {
    if (host == shape_text({dim})) return name;
  }
  std::string name = is_identifier(dim.text) ? fresh(dim.text) : fresh("size");
  sizes_.emplace_back(name, shape_text({dim}));
  return name;
}

std::string KernelText::size(const std::string& name, const std::string& host) {
  for (const auto& [known, text] : sizes_) {
    if (text == host) return known;
  }
  std::string own = fresh(name);
  sizes_.emplace_back(own, host);
  return own;
}

std::string KernelText::module_bias(const std::string& owner, const std::string& acc, const std::string& offset,
                                    const std::string& mask) {
  std::string pointer = size("bias_ptr", owner + ".bias"), given = fixed_size("HAS_BIAS", owner + ".bias is not None");
  std::string where = cat(pointer, " + ", offset);
  line(cat("if ", given, ":"));
  line(cat("    ", acc, " += tl.load(", where, style().keyword_other ? ", mask=" : ", ", mask,
           style().keyword_other ? ", other=0.0)" : ", 0.0)"));
  return acc;
}

std::string KernelText::fixed_size(const std::string& name, const std::string& host) {
  if (fixed_.insert(name).second) sizes_.emplace_back(name, host);
  return name;
}

std::string KernelText::constant(const std::string& name, const std::string& host) {
  for (const auto& [known, text] : constants_) {
    if (known == name) return known;
  }
  constants_.emplace_back(name, host);
  return name;
}

std::string KernelText::helper(const std::string& name, const std::string& parameters, const std::string& text) {
  std::string body = cat("(", parameters, "):\n    return ", text, "\n");
  std::string own = name;
  for (int i = 2; file_.helpers.count(own) && file_.helpers[own] != body; ++i) own = cat(name, i);
  if (file_.helpers.emplace(own, body).second) file_.helper_order.push_back(own);
  return own;
}

std::string KernelText::mask_of(const Shape& shape, const Place& place) {
  if (!place.flat.empty() && place.of == shape) return place.flat_mask;
  std::vector<std::string> masks;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string& mask = place.at[i].mask;
    if (shape[i].is_one() || mask.empty()) continue;
    for (const std::string& part : split(mask, '&')) {
      std::string own = trim(part);
      if (!own.empty() && std::find(masks.begin(), masks.end(), own) == masks.end()) masks.push_back(own);
    }
  }
  return join(masks, " & ");
}

std::string KernelText::offset_of(const Shape& shape, const Place& place) {
  if (!place.flat.empty() && place.of == shape) return place.flat;
  std::string out;
  bool sum = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_one()) continue;
    if (!out.empty()) {
      out = times(sum ? "(" + out + ")" : out, size(shape[i])) + " + " + place.at[i].text;
      sum = true;
    } else {
      out = place.at[i].text;
    }
  }
  return out;
}

std::string KernelText::load(int id, const std::string& offset, const std::string& mask, const std::string& other) {
  std::string address = pointer(id) + (offset.empty() ? "" : " + " + offset);
  std::string text = mask.empty()            ? cat("tl.load(", address, ")")
                     : other.empty()         ? cat("tl.load(", address, ", ", mask, ")")
                     : style().keyword_other ? cat("tl.load(", address, ", mask=", mask, ", other=", other, ")")
                                             : cat("tl.load(", address, ", ", mask, ", ", other, ")");
  Type type = graph()[id].type;
  if (type == Type::kInt64) return text;
  if (type == Type::kBool) return text + ".to(tl.float32)";
  return text + (is_half(type) ? ".to(tl.float32)" : "");
}

void KernelText::store(int id, const std::string& offset, const std::string& variable, const std::string& mask) {
  std::string out = pointer(id, true);
  Type type = graph()[id].type;
  std::string what = variable;
  if (is_half(type) && style().explicit_cast) what += cat(".to(", out, ".dtype.element_ty)");
  line(cat("tl.store(", out, offset.empty() ? "" : " + " + offset, ", ", what,
           mask.empty() ? "" : (style().keyword_other ? ", mask=" : ", ") + mask, ")"));
}

std::vector<Coord> KernelText::take_apart(const std::string& flat, const Shape& shape, const std::string& mask) {
  const bool rows = flat == "row";
  const std::string asked = cat(shape_text(shape), "|", mask);
  if (auto it = rows_.find(asked); rows && it != rows_.end()) return it->second;
  std::vector<Coord> out(shape.size());
  std::vector<size_t> real;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_one()) real.push_back(i);
  }
  if (real.size() == 1) {
    out[real[0]] = {flat, mask};
    return out;
  }
  std::vector<std::pair<std::string, std::string>> lines;
  for (size_t r = real.size(); r-- > 0;) {
    size_t i = real[r];
    std::string name = fresh(cat("i", i));
    std::string after;  // Product of the sizes behind.
    for (size_t q = r + 1; q < real.size(); ++q) {
      after = after.empty() ? size(shape[real[q]]) : cat(after, " * ", size(shape[real[q]]));
    }
    if (after.find('*') != std::string::npos) after = "(" + after + ")";
    std::string divided = after.empty() ? flat : cat(flat, " // ", after);
    lines.emplace_back(name, r == 0 ? divided : cat(after.empty() ? flat : "(" + divided + ")", " % ", size(shape[i])));
    out[i] = {name, mask};
  }
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    if (rows) {
      head(it->first, it->second);
    } else {
      define(it->first, it->second);
    }
  }
  if (rows) rows_[asked] = out;
  return out;
}

Place KernelText::broadcast_place(const Place& place, const Shape& shape, const Shape& operand) const {
  Place out;
  out.at.resize(operand.size());
  size_t skip = shape.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) {
    if (!operand[i].is_one()) out.at[i] = place.at[i + skip];
  }
  out.flat = place.flat;
  out.flat_mask = place.flat_mask;
  out.of = place.of;
  return out;
}

std::string KernelText::key(int node, const Place& place) const {
  std::string out = cat(node, ":");
  for (const Coord& coord : place.at) out += coord.text + "|" + coord.mask + ";";
  return out;
}

std::string KernelText::value(int id, const Place& place) {
  const Node& node = graph()[id];
  if (auto it = members_.find(id); it != members_.end()) return it->second;
  if (kept_ && id == 0) return "r";
  std::string known = key(id, place);
  if (auto it = known_.find(known); it != known_.end()) return it->second;
  int home = file_.plan.home[static_cast<size_t>(id)];
  std::string name;
  if (node.kind != Node::Kind::kCompute || (home >= 0 && home < kernel_)) {
    std::string stem =
        node.kind == Node::Kind::kCompute
            ? host_name(file_, id)
            : file_.naming.values.at(static_cast<size_t>(std::max(0, file_.plan.from[static_cast<size_t>(id)])));
    if (size_t dot = stem.rfind('.'); dot != std::string::npos) stem = stem.substr(dot + 1);
    stem = stem.substr(0, stem.find('['));
    std::string offset = offset_of(node.shape, place), mask = mask_of(node.shape, place);
    std::string other = style().plain ? "" : node.type == Type::kInt64 ? "0" : "0.0";
    name = assign(stem, load(id, offset, mask, other));
    if (style().plain && id == 0 && keeps_first_input(graph())) line("r = x");
  } else if (node.op->work == Work::kPointwise) {
    name = pointwise(id, place);
  } else if (node.op->work == Work::kRow) {
    name = row(id);
  } else {
    CHECK(node.op->work == Work::kMove) << node.op->name << " cannot be read inside a kernel";
    name = moved(id, place);
  }
  if (home == kernel_) members_[id] = name;
  known_[known] = name;
  return name;
}

std::string KernelText::pointwise(int id, const Place& place) {
  const Node& node = graph()[id];
  std::vector<std::string> tensors, parameters;
  for (int operand : node.operands) {
    std::string name = value(operand, broadcast_place(place, node.shape, graph()[operand].shape));
    bool parameter = graph()[operand].kind == Node::Kind::kParameter && graph()[operand].draw.empty();
    (parameter ? parameters : tensors).push_back(name);
  }
  std::string text = node.op->triton;
  for (size_t i = 0; i < parameters.size(); ++i) text = replace_all(text, cat("{p", i, "}"), parameters[i]);
  if (text.find("{scale}") != std::string::npos) {
    text = replace_all(text, "{scale}",
                       size("scale", cat(node.module_dims.at(0).text, " ** ", python_float(node.numbers.at(0)))));
  }
  if (text == "{power}") {
    text = join(std::vector<std::string>(static_cast<size_t>(node.ints.at("exponent")), "{x}"), " * ");
  }
  for (const char* key : {"a", "b"}) {
    auto scalar = file_.naming.scalars.find({file_.plan.from[static_cast<size_t>(id)], key});
    std::string place = cat("{", key, "}");
    if (!style().pass_scalars || scalar == file_.naming.scalars.end() || text.find(place) == std::string::npos)
      continue;
    const auto& given = file_.naming.parameters;
    bool argument = std::find(given.begin(), given.end(), scalar->second) != given.end();
    text = replace_all(text, place, size(scalar->second, (argument ? "" : "self.") + scalar->second));
  }
  static const std::vector<std::string> kStems = {"v", "", "t", "val"};
  const std::string& chosen = kStems[static_cast<size_t>(style().names)];
  std::string stem = chosen.empty() ? node.op->name + "_out" : chosen;
  if (text == "{x}") return tensors[0];
  bool compound = node.op->triton.size() > 34 && parameters.empty() && node.op->triton.find("{a}") == std::string::npos;
  if (style().helpers && compound && node.op->family == "elementwise") {
    const char* names[] = {"x", "y", "z"};
    std::vector<std::string> formal(names, names + tensors.size());
    std::string call = helper(node.op->name, join(formal, ", "), fill_template(text, formal, node.numbers));
    return assign(chosen.empty() ? "act" : stem, cat(call, "(", join(tensors, ", "), ")"));
  }
  // A value read as part of an expression must not fall apart: names only.
  return result(stem, fill_template(text, tensors, node.numbers));
}

std::string KernelText::masked(const std::string& variable, const std::string& fill) {
  std::string text = cat("tl.where(", row_mask, ", ", variable, ", ", fill, ")");
  if (!style().plain) return assign("masked", text);
  line(cat(variable, " = ", text));
  return variable;
}

std::string KernelText::row(int id) {
  const Node& node = graph()[id];
  CHECK(!row_index.empty()) << node.op->name << " outside of a row kernel";
  const Shape& full = graph()[node.operands[0]].shape;
  std::string text = node.op->triton, x = value(node.operands[0], row_place), y, z;
  std::string m = text.find("{m}") != std::string::npos ? masked(x, node.op->fill) : "";
  size_t tensors = static_cast<size_t>(node.op->arity);
  if (tensors >= 2) {
    const Node& second = graph()[node.operands[1]];
    Place rows = row_place;
    if (!(second.shape == full)) {  // A class index a row.
      rows.at.pop_back();
      rows.flat = "";
    }
    y = value(node.operands[1], rows);
  }
  if (tensors == 3) z = value(node.operands[2], row_place);
  if (text.find("{m3}") != std::string::npos) text = replace_all(text, "{m3}", masked(z, node.op->fill));
  if (text.find("{m2}") != std::string::npos) text = replace_all(text, "{m2}", masked(y, node.op->fill));
  if (text.find("{t}") != std::string::npos)
    text = replace_all(text, "{t}", fresh(node.op->fill[0] == 'f' ? "top" : "mean"));
  if (text.find("{t2}") != std::string::npos) text = replace_all(text, "{t2}", fresh("part"));
  text = replace_all(replace_all(text, "{ax}", ax), "{axis}", axis);
  text = replace_all(replace_all(text, "{mask}", row_mask), "{i}", row_index);
  text = replace_all(replace_all(text, "{n}", row_count), "{m}", m);
  if (text.find("larger") != std::string::npos) helper("larger", "a, b", "tl.maximum(a, b)");
  if (text.find("smaller") != std::string::npos) helper("smaller", "a, b", "tl.minimum(a, b)");
  if (text.find("multiplied") != std::string::npos) helper("multiplied", "a, b", "a * b");
  std::vector<std::string> lines = split(fill_template(text, {x, y, z}, node.numbers), '\n');
  comment(node.op->name + " along the row");
  for (size_t i = 0; i + 1 < lines.size(); ++i) line(lines[i]);
  std::string stem = style().names == 1 ? node.op->name + "_out" : node.op->scalar_rows ? "total" : "r";
  std::string out = result(stem, lines.back());
  // Affine parameters of norms.
  if (node.op->family == "norm" && node.operands.size() > tensors) {
    for (size_t i = tensors; i < node.operands.size(); ++i) {
      std::string p = value(node.operands[i], broadcast_place(row_place, full, graph()[node.operands[i]].shape));
      out = result(stem, cat(out, i == tensors ? " * " : " + ", p));
    }
  }
  return out;
}

std::string KernelText::text() const {
  std::vector<std::string> parameters;
  for (const auto& [node, name] : pointers_) parameters.push_back(name);
  for (const std::string& name : scratches_) parameters.push_back(name + "_ptr");
  std::string heads, used = body_;
  for (auto it = head_.rbegin(); it != head_.rend(); ++it) {
    if (!it->first.empty() && !mentions(used, it->first)) continue;
    std::string line = cat("    ", it->first.empty() ? "" : it->first + " = ", it->second, "\n");
    heads = line + heads;
    used += line;
  }
  for (bool fixed : {false, true}) {
    for (const auto& [name, host] : sizes_) {
      if ((fixed_.count(name) > 0) == fixed && mentions(used, name))
        parameters.push_back(name + (fixed ? ": tl.constexpr" : ""));
    }
  }
  for (const auto& [name, host] : constants_) parameters.push_back(name + ": tl.constexpr");
  return cat("@triton.jit\ndef ", name_, "(", join(parameters, ", "), "):\n", heads, body_);
}

std::vector<std::string> KernelText::arguments() const {
  std::vector<std::string> out;
  std::string all = text();
  std::string signature = all.substr(0, all.find("):\n"));
  for (const auto& [node, name] : pointers_) out.push_back(host_name(file_, node));
  for (const std::string& name : scratches_) out.push_back(name);
  for (bool fixed : {false, true}) {
    for (const auto& [name, host] : sizes_) {
      if ((fixed_.count(name) > 0) == fixed && mentions(signature, name)) out.push_back(host);
    }
  }
  for (const auto& [name, host] : constants_) out.push_back(style().plain ? host : name + "=" + host);
  return out;
}

}  // namespace tritonrl::graphs
