// SPDX-License-Identifier: Apache-2.0
// Configs: a struct lists its fields once; defaults, parsing, printing and help come from that list.
//
//   struct SftConfig {
//     double lr = 1e-3;   // Peak learning rate.
//     template <class V> void for_each_field(V& v) { v("lr", lr, "peak learning rate"); }
//     void validate() const { ... }                          // Optional; throws Error for a bad combination.
//   };
//
// Values come from: defaults < YAML files, left to right < `--set a.b=c`. Unknown keys, wrong types and bad
// combinations are Errors that name file, line and the nearest valid key.
//
// A field may be a tag on which others depend (a tagged union). Three more calls of a visitor say how:
//   v.then([&] { set_defaults_of(kind); });              when reading, before the fields listed behind it are read
//   v.when(kind == kA, "kind: a", [&] { v("x", x, ""); })   fields that exist under that condition only
//   v.renamed("old", "section.new");                     a key of former versions: refused, and the new one named
// Enums are written by name (base/enum_names.h).
//
// Goals: one declaration a field; errors that name what was meant; printing a config gives a file that loads to the
// same config. Non-goals: aliases, includes, variables, environment look-ups. Rejected: flag libraries (a second
// declaration a field), protobuf (a build step), reflection macros (unreadable errors).
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

// One node of a merged YAML tree: a map, a list of scalars, or a scalar. Every node knows where its value came from.
struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string scalar;
  std::vector<std::string> list;
  std::map<std::string, ConfigNode> map;
  std::string where;  // "file:line" or "--set a.b=c".
};

// Parses one YAML file. Throws Error with file:line.
ConfigNode parse_yaml_file(const std::string& path);
// `overlay` wins; maps merge key by key, everything else is replaced.
void merge_into(ConfigNode& base, const ConfigNode& overlay);
// Applies one "a.b=c" (c in YAML flow syntax, so lists work: keep=[1, 2]).
void apply_set(ConfigNode& base, const std::string& assignment);

namespace internal {
[[noreturn]] void bad_value(const ConfigNode& node, const std::string& path, const std::string& expected);
[[noreturn]] void bad_name(const ConfigNode& node, const std::string& path, const std::vector<std::string>& names);

// The dotted paths of a config's keys and sections, a section before what it holds.
struct KnownKeys {
  std::vector<std::string> valid;
  std::map<std::string, std::string> others;   // Keys under another condition, and which.
  std::map<std::string, std::string> renamed;  // Former keys, and what they are called now.
};
// Throws Error (usage) for a key of `node` (at `path`, "" = the root) that is not valid. The hint names what is: the
// new name, the condition it lacks, close keys, and those of the same name in other sections.
void refuse_unknown_keys(const ConfigNode& node, const std::string& path, const KnownKeys& known);
bool parse_bool(const ConfigNode& node, const std::string& path);
int64_t parse_int(const ConfigNode& node, const std::string& path);
double parse_double(const ConfigNode& node, const std::string& path);
std::string print_double(double value);
std::string quote_yaml(const std::string& text);
}  // namespace internal

struct ConfigReader;
struct ConfigPrinter;

template <class T>
concept ConfigStruct = requires(T& t, ConfigReader& v) {
  t.for_each_field(v);
};

// What visitors do with conditions unless they say otherwise.
struct ConfigVisitor {
  template <class Set>
  void then(Set&&) {}
  template <class Body>
  void when(bool applies, const char* /*condition*/, Body&& body) {
    if (applies) body();
  }
  void renamed(const char* /*old_name*/, const char* /*now*/) {}
};

// Visitor: fills a struct from a node.
struct ConfigReader : ConfigVisitor {
  const ConfigNode* node;
  std::string path;

  ConfigReader(const ConfigNode* from, std::string at) : node(from), path(std::move(at)) {}
  template <class Set>
  void then(Set&& set) {
    set();
  }

  template <class T>
  void operator()(const char* name, T& field, const char* /*help*/) {
    const ConfigNode* child = find(name);
    std::string child_path = path.empty() ? name : path + "." + name;
    if constexpr (ConfigStruct<T>) {
      static const ConfigNode empty{};
      if (child && child->kind != ConfigNode::Kind::kMap && child->kind != ConfigNode::Kind::kNull) {
        internal::bad_value(*child, child_path, "a map");
      }
      ConfigReader inner(child ? child : &empty, child_path);
      field.for_each_field(inner);
    } else if (child && child->kind != ConfigNode::Kind::kNull) {
      assign(field, *child, child_path);
    }
  }

 private:
  const ConfigNode* find(const char* name) const {
    auto it = node->map.find(name);
    return it == node->map.end() ? nullptr : &it->second;
  }
  static void assign(bool& field, const ConfigNode& n, const std::string& p) { field = internal::parse_bool(n, p); }
  template <std::integral T>
  requires(!std::same_as<T, bool>) static void assign(T& field, const ConfigNode& n, const std::string& p) {
    field = static_cast<T>(internal::parse_int(n, p));
  }
  template <NamedEnum E>
  static void assign(E& field, const ConfigNode& n, const std::string& p) {
    auto value = n.kind == ConfigNode::Kind::kScalar ? named<E>(n.scalar) : std::nullopt;
    if (!value) internal::bad_name(n, p, names_of<E>());
    field = *value;
  }
  static void assign(double& field, const ConfigNode& n, const std::string& p) { field = internal::parse_double(n, p); }
  static void assign(std::string& field, const ConfigNode& n, const std::string& p) {
    if (n.kind != ConfigNode::Kind::kScalar) internal::bad_value(n, p, "a string");
    field = n.scalar;
  }
  template <class T>
  static void assign(std::vector<T>& field, const ConfigNode& n, const std::string& p) {
    if (n.kind != ConfigNode::Kind::kList) internal::bad_value(n, p, "a list");
    field.clear();
    for (const auto& item : n.list) {
      ConfigNode scalar{ConfigNode::Kind::kScalar, item, {}, {}, n.where};
      T value{};
      assign(value, scalar, p);
      field.push_back(value);
    }
  }
};

// Visitor: calls validate() of every section, the inner ones first. The nodes say where values came from.
struct ConfigChecker : ConfigVisitor {
  const ConfigNode* node;
  std::string path;

  ConfigChecker(const ConfigNode* from, std::string at) : node(from), path(std::move(at)) {}
  template <class T>
  void operator()(const char* name, T& field, const char* /*help*/) {
    if constexpr (ConfigStruct<T>) {
      static const ConfigNode empty{};
      auto it = node->map.find(name);
      check(field, it == node->map.end() ? empty : it->second, path.empty() ? name : path + "." + name);
    }
  }
  template <ConfigStruct T>
  static void check(T& config, const ConfigNode& node, const std::string& path) {
    ConfigChecker inner(&node, path);
    config.for_each_field(inner);
    if constexpr (requires { config.validate(); }) {
      try {
        config.validate();
      } catch (const Error& e) {  // Says where the section came from, when it came from somewhere.
        throw usage_error((path.empty() ? "" : path + ": ") + e.message(), e.where().empty() ? node.where : e.where(),
                          e.hint());
      }
    }
  }
};

// Visitor: lists keys and sections.
struct ConfigKeys : ConfigVisitor {
  internal::KnownKeys known;

  template <class T>
  void operator()(const char* name, T& field, const char* /*help*/) {
    std::string key = below(name);
    if (!condition_.empty()) {
      known.others[key] = condition_;
      return;
    }
    known.valid.push_back(key);
    if constexpr (ConfigStruct<T>) {
      std::string outer = std::exchange(path_, key);
      field.for_each_field(*this);
      path_ = std::move(outer);
    }
  }
  template <class Body>
  void when(bool applies, const char* condition, Body&& body) {
    std::string outer = condition_;
    if (!applies && outer.empty()) condition_ = condition;
    body();
    condition_ = std::move(outer);
  }
  void renamed(const char* old_name, const char* now) { known.renamed[below(old_name)] = now; }

 private:
  std::string below(const char* name) const { return path_.empty() ? name : path_ + "." + name; }
  std::string path_, condition_;
};

// Visitor: prints a struct as YAML, with each field's help as a comment when asked for.
struct ConfigPrinter : ConfigVisitor {
  std::string out;
  int indent = 0;
  bool with_help = false;

  template <class T>
  void operator()(const char* name, T& field, const char* help) {
    if constexpr (ConfigStruct<T>) {
      line(cat(name, ":"), help);
      indent += 2;
      field.for_each_field(*this);
      indent -= 2;
    } else if constexpr (NamedEnum<T>) {
      line(cat(name, ": ", name_of(field)), cat(help, " (", join(names_of<T>(), " | "), ")"));
    } else {
      line(cat(name, ": ", print(field)), help);
    }
  }

 private:
  void line(const std::string& text, const std::string& help) {
    std::string full = std::string(static_cast<size_t>(indent), ' ') + text;
    if (with_help && !help.empty()) full += std::string(full.size() < 44 ? 44 - full.size() : 1, ' ') + "# " + help;
    out += full + "\n";
  }
  static std::string print(bool v) { return v ? "true" : "false"; }
  template <std::integral T>
  requires(!std::same_as<T, bool>) static std::string print(T v) { return cat(v); }
  static std::string print(double v) { return internal::print_double(v); }
  static std::string print(const std::string& v) { return internal::quote_yaml(v); }
  template <class T>
  static std::string print(const std::vector<T>& v) {
    std::vector<std::string> parts;
    for (const T& item : v) parts.push_back(print(item));
    return "[" + join(parts, ", ") + "]";
  }
};

// Fills a config from a tree, then calls validate() of every section. Throws Error.
template <ConfigStruct T>
void read_config(T& config, const ConfigNode& root) {
  ConfigReader reader(&root, "");
  config.for_each_field(reader);
  ConfigKeys keys;  // Behind reading: which keys there are may depend on values.
  config.for_each_field(keys);
  internal::refuse_unknown_keys(root, "", keys.known);
  ConfigChecker::check(config, root, "");
}

// Loads a config: defaults < files < sets. Throws Error.
template <ConfigStruct T>
T load_config(const std::vector<std::string>& files, const std::vector<std::string>& sets, T config = {}) {
  ConfigNode root;
  root.kind = ConfigNode::Kind::kMap;
  for (const auto& file : files) merge_into(root, parse_yaml_file(file));
  for (const auto& set : sets) apply_set(root, set);
  read_config(config, root);
  return config;
}

// The resolved config as YAML; load_config of that text gives the same config.
template <ConfigStruct T>
std::string to_yaml(const T& config, bool with_help = false) {
  ConfigPrinter printer;
  printer.with_help = with_help;
  T copy = config;
  copy.for_each_field(printer);
  return printer.out;
}

}  // namespace tritonrl
