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
// Goals: one declaration a field; errors a typo can be mended from; printing a config gives a file that loads to the
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

// Keys of earlier versions: dotted path -> where its job went, as the rest of "it is ... now". A root config that has
// any says so with `static const MovedKeys& moved_keys()`.
using MovedKeys = std::map<std::string, std::string>;

namespace internal {
[[noreturn]] void bad_value(const ConfigNode& node, const std::string& path, const std::string& expected);
// Throws Error (usage) for a key of `node` (at `path`, "" = the root) that is not among `known`, the dotted paths of
// all keys and sections. The hint names valid keys: close ones, and those of the same name in other sections.
// A key of `moved` is said to be what it became.
void refuse_unknown_keys(const ConfigNode& node, const std::string& path, const std::vector<std::string>& known,
                         const MovedKeys& moved = {});
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

// Visitor: fills a struct from a node.
struct ConfigReader {
  const ConfigNode* node;
  std::string path;

  template <class T>
  void operator()(const char* name, T& field, const char* /*help*/) {
    const ConfigNode* child = find(name);
    std::string child_path = path.empty() ? name : path + "." + name;
    if constexpr (ConfigStruct<T>) {
      static const ConfigNode empty{};
      if (child && child->kind != ConfigNode::Kind::kMap && child->kind != ConfigNode::Kind::kNull) {
        internal::bad_value(*child, child_path, "a map");
      }
      read(field, child ? *child : empty, child_path);
    } else if (child && child->kind != ConfigNode::Kind::kNull) {
      assign(field, *child, child_path);
    }
  }

  // A string field with a closed set of values.
  void choice(const char* name, std::string& field, const std::vector<std::string>& allowed, const char* help);

  template <ConfigStruct T>
  static void read(T& config, const ConfigNode& node, const std::string& path) {
    ConfigReader reader{&node, path};
    config.for_each_field(reader);
    if constexpr (requires { config.validate(); }) {
      try {
        config.validate();
      } catch (const Error& e) {  // Says where the section came from, when it came from somewhere.
        throw usage_error((path.empty() ? "" : path + ": ") + e.message(), e.where().empty() ? node.where : e.where(),
                          e.hint());
      }
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

// Visitor: lists the dotted paths of all keys and sections, a section before what it holds.
struct ConfigKeys {
  std::string path;
  std::vector<std::string> keys;

  template <class T>
  void operator()(const char* name, T& field, const char* /*help*/) {
    keys.push_back(path.empty() ? name : path + "." + name);
    if constexpr (ConfigStruct<T>) {
      std::string outer = std::exchange(path, keys.back());
      field.for_each_field(*this);
      path = std::move(outer);
    }
  }
  void choice(const char* name, std::string& field, const std::vector<std::string>& /*allowed*/, const char* help) {
    (*this)(name, field, help);
  }
};

// Visitor: prints a struct as YAML, with each field's help as a comment when asked for.
struct ConfigPrinter {
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
    } else {
      line(cat(name, ": ", print(field)), help);
    }
  }
  void choice(const char* name, std::string& field, const std::vector<std::string>& allowed, const char* help) {
    line(cat(name, ": ", print(field)), cat(help, " (", join(allowed, " | "), ")"));
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

// Loads a config: defaults < files < sets, then validate() of every section. Throws Error.
template <ConfigStruct T>
T load_config(const std::vector<std::string>& files, const std::vector<std::string>& sets, T config = {}) {
  ConfigNode root;
  root.kind = ConfigNode::Kind::kMap;
  for (const auto& file : files) merge_into(root, parse_yaml_file(file));
  for (const auto& set : sets) apply_set(root, set);
  ConfigKeys keys;
  config.for_each_field(keys);
  MovedKeys moved;
  if constexpr (requires { T::moved_keys(); }) moved = T::moved_keys();
  internal::refuse_unknown_keys(root, "", keys.keys, moved);
  ConfigReader::read(config, root, "");
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
