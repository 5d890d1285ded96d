// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/shape_variants.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "data/syntax_tree.h"

namespace tritonrl {
namespace {

constexpr int64_t kSmallest = 4;
constexpr int64_t kLargest = int64_t{1} << 31;

// The value of an integer expression, as worker/candidate.py understands it.
std::optional<int64_t> value_of(const SyntaxTree& tree, TSNode node) {
  std::string_view type = type_of(node);
  if (type == "integer") {
    std::string text = replace_all(tree.text(node), "_", "");
    if (text.size() > 12 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return std::stoll(text);
  }
  if (type == "parenthesized_expression" && ts_node_named_child_count(node) == 1) {
    return value_of(tree, ts_node_named_child(node, 0));
  }
  if (type != "binary_operator") return std::nullopt;
  auto left = value_of(tree, SyntaxTree::child(node, "left")), right = value_of(tree, SyntaxTree::child(node, "right"));
  if (!left || !right) return std::nullopt;
  std::string op = tree.text_of_field(node, "operator");
  int64_t out = op == "*"                  ? *left * *right
                : op == "+"                ? *left + *right
                : op == "-"                ? *left - *right
                : op == "//" && *right > 0 ? *left / *right
                                           : -1;
  if (out < 0 || out > kLargest) return std::nullopt;
  return out;
}

// The assignment in a module-level statement, or a null node.
TSNode assignment_in(TSNode statement) {
  if (type_of(statement) != "expression_statement" || ts_node_named_child_count(statement) != 1) return {};
  TSNode node = ts_node_named_child(statement, 0);
  return type_of(node) == "assignment" ? node : TSNode{};
}

bool holds(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

// Settings, which change what is computed and not how much.
bool is_setting(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "dim" || name == "axis" || name == "p" || name == "k" || name == "ndim") return name != "k";
  return holds(name, {"kernel",    "stride", "padding", "dilation", "group", "num_layers", "n_layer",
                      "depth",     "scale",  "factor",  "divi",     "value", "reduce_dim", "reduction",
                      "expand",    "ratio",  "eps",     "seed",     "pool",  "num_heads",  "n_head",
                      "num_class", "min",    "max_",    "constant", "power", "times",      "exponent"}) &&
         !holds(name, {"group_size"});
}

bool is_batch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("batch") != std::string::npos;
}

bool is_factory(const std::string& name) {
  static const std::set<std::string> names = {"rand", "randn", "zeros", "ones", "empty", "full"};
  return names.count(name) > 0;
}

class Namer {
 public:
  explicit Namer(const std::string& source) : source_(source), tree_(source) {}

  std::string run() {
    for_each_child(tree_.root(), [&](TSNode statement) {
      TSNode assignment = assignment_in(statement);
      if (!ts_node_is_null(assignment)) {
        TSNode right = SyntaxTree::child(assignment, "right");
        std::string name = tree_.text_of_field(assignment, "left");
        if (!ts_node_is_null(right) && (type_of(right) == "tuple" || type_of(right) == "list") && !is_setting(name)) {
          note_first(statement);
          elements(right);
        }
        return;
      }
      TSNode definition = undecorated(statement);
      if (type_of(definition) != "function_definition") return;
      std::string name = tree_.text_of_field(definition, "name");
      if (name == "get_inputs") {
        note_first(statement);
        for_each_node(definition, [&](TSNode node) { factory(node); });
      } else if (name == "get_init_inputs") {
        note_first(statement);
        for_each_node(definition, [&](TSNode node) {
          if (type_of(node) == "return_statement" && ts_node_named_child_count(node) == 1 &&
              type_of(ts_node_named_child(node, 0)) == "list") {
            elements(ts_node_named_child(node, 0));
          }
        });
      }
    });
    if (places_.empty()) return source_;
    std::string out = source_;
    std::set<int64_t> values;
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.start > b.start; });
    for (const Place& place : places_) {
      out.replace(place.start, place.end - place.start, cat("SIZE_", place.value));
      values.insert(place.value);
    }
    std::string head;
    for (int64_t value : values) head += cat("SIZE_", value, " = ", value, "\n");
    // In front of the first statement that uses one; all edits lie behind it.
    out.insert(first_, head + "\n");
    return out;
  }

 private:
  struct Place {
    uint32_t start, end;
    int64_t value;
  };
  void note_first(TSNode statement) { first_ = std::min(first_, static_cast<size_t>(ts_node_start_byte(statement))); }

  void number(TSNode node) {
    if (type_of(node) != "integer") return;
    auto value = value_of(tree_, node);
    if (value && *value >= kSmallest) places_.push_back({ts_node_start_byte(node), ts_node_end_byte(node), *value});
  }
  void elements(TSNode list) {
    for (uint32_t i = 0; i < ts_node_named_child_count(list); ++i) number(ts_node_named_child(list, i));
  }
  void factory(TSNode call) {
    if (type_of(call) != "call") return;
    TSNode callee = SyntaxTree::child(call, "function");
    std::string name = type_of(callee) == "attribute" ? tree_.text_of_field(callee, "attribute") : "";
    TSNode list = SyntaxTree::child(call, "arguments");
    bool sized = name == "randint";  // Its size is a tuple among the arguments; the bounds are no sizes.
    if (!is_factory(name) && !sized) return;
    for (uint32_t i = 0; i < ts_node_named_child_count(list); ++i) {
      TSNode argument = ts_node_named_child(list, i);
      if (type_of(argument) == "tuple" || type_of(argument) == "list") elements(argument);
      if (name == "full") break;
      if (!sized) number(argument);
    }
  }

  std::string source_;
  SyntaxTree tree_;
  std::vector<Place> places_;
  size_t first_ = std::string::npos;
};

}  // namespace

Sizes module_integers(const std::string& source) {
  SyntaxTree tree(source);
  Sizes out;
  std::set<std::string> twice;
  for_each_child(tree.root(), [&](TSNode statement) {
    TSNode assignment = assignment_in(statement);
    if (ts_node_is_null(assignment)) return;
    TSNode left = SyntaxTree::child(assignment, "left"), right = SyntaxTree::child(assignment, "right");
    if (ts_node_is_null(right)) return;
    auto give = [&](TSNode target, TSNode node) {
      if (type_of(target) != "identifier") return;
      std::string name = tree.text(target);
      auto value = value_of(tree, node);
      if (!value || !out.try_emplace(name, *value).second) twice.insert(name);
    };
    uint32_t count = ts_node_named_child_count(left);
    if (type_of(left) == "pattern_list" && type_of(right) == "expression_list" &&
        ts_node_named_child_count(right) == count) {  // height, width = 32, 64
      for (uint32_t i = 0; i < count; ++i) give(ts_node_named_child(left, i), ts_node_named_child(right, i));
    } else {
      give(left, right);
    }
  });
  for (const std::string& name : twice) out.erase(name);
  return out;
}

Sizes size_constants(const std::string& source) {
  Sizes out;
  for (const auto& [name, value] : module_integers(source)) {
    if (!is_setting(name) && (value >= kSmallest || (is_batch(name) && value >= 2))) out[name] = value;
  }
  return out;
}

std::string name_sizes(const std::string& source) { return Namer(source).run(); }

namespace {

// Applies a rule to each size; drops what stays as it is.
template <class Rule>
Sizes changed(const Sizes& sizes, const Rule& rule) {
  Sizes out;
  for (const auto& [name, value] : sizes) {
    int64_t now = rule(name, value);
    if (now != value) out[name] = now;
  }
  return out;
}

void add(std::vector<Sizes>* out, Sizes sizes) {
  if (!sizes.empty() && std::find(out->begin(), out->end(), sizes) == out->end()) out->push_back(std::move(sizes));
}

}  // namespace

std::vector<Sizes> tiny_proposals(const Sizes& sizes) {
  std::vector<Sizes> out;
  std::vector<int64_t> ranks;  // Distinct values, so that two sizes never become one.
  for (const auto& [name, value] : sizes) ranks.push_back(value);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  auto rank = [&](int64_t value) { return std::lower_bound(ranks.begin(), ranks.end(), value) - ranks.begin(); };
  auto batch = [](const std::string& name, int64_t value) { return is_batch(name) ? std::min<int64_t>(value, 2) : 0; };
  // Odd and all different; then rounder and larger, for what must divide or hold a window.
  add(&out, changed(sizes, [&](const std::string& name, int64_t value) {
    return batch(name, value) ? std::min<int64_t>(value, 3) : std::min<int64_t>(value, 5 + 2 * rank(value));
  }));
  for (int64_t unit : {8, 16, 32, 64}) {
    add(&out, changed(sizes, [&](const std::string& name, int64_t value) {
      return batch(name, value) ? batch(name, value) : std::min<int64_t>(value, unit * (1 + rank(value)));
    }));
    add(&out, changed(sizes, [&](const std::string& name, int64_t value) {
      return batch(name, value) ? batch(name, value) : std::min<int64_t>(value, unit);
    }));
  }
  // Smaller by a common factor, which keeps every ratio.
  for (int64_t factor : {64, 32, 16, 8, 4, 2}) {
    add(&out, changed(sizes, [&](const std::string& name, int64_t value) {
      if (batch(name, value)) return batch(name, value);
      return value % factor == 0 && value / factor >= 2 ? value / factor : value;
    }));
  }
  return out;
}

std::vector<Sizes> larger_proposals(const Sizes& sizes) {
  std::vector<Sizes> out;
  auto half_more = [](int64_t value) { return value + std::max<int64_t>(1, value / 2); };
  add(&out, changed(sizes, [&](const std::string&, int64_t value) { return half_more(value); }));
  // Without the batch; then all of one value at a time, the batch last: what remains valid for most modules.
  add(&out, changed(sizes, [&](const std::string& name, int64_t v) { return is_batch(name) ? v : half_more(v); }));
  std::set<int64_t, std::greater<>> values;
  for (const auto& [name, value] : sizes) {
    if (!is_batch(name)) values.insert(value);
  }
  for (int64_t left_out : values) {
    add(&out, changed(sizes, [&](const std::string&, int64_t v) { return v == left_out ? v : half_more(v); }));
  }
  for (int64_t only : values) {
    add(&out, changed(sizes, [&](const std::string&, int64_t v) { return v == only ? half_more(v) : v; }));
  }
  add(&out, changed(sizes, [&](const std::string& name, int64_t v) { return is_batch(name) ? half_more(v) : v; }));
  return out;
}

}  // namespace tritonrl
