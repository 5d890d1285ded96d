// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace tritonrl {

namespace {

ConfigNode convert(const YAML::Node& yaml, const std::string& file) {
  ConfigNode node;
  auto at = [&](const YAML::Node& n) {
    return n.Mark().is_null() || file.empty() ? file : cat(file, ":", n.Mark().line + 1);
  };
  node.where = at(yaml);
  if (yaml.IsMap()) {
    node.kind = ConfigNode::Kind::kMap;
    for (const auto& pair : yaml) {
      auto key = pair.first.as<std::string>();
      if (node.map.count(key)) throw usage_error("key '" + key + "' appears twice", at(pair.first));
      ConfigNode child = convert(pair.second, file);
      child.where = at(pair.first);
      node.map.emplace(key, std::move(child));
    }
  } else if (yaml.IsSequence()) {
    node.kind = ConfigNode::Kind::kList;
    for (const auto& item : yaml) {
      if (!item.IsScalar()) throw usage_error("lists may hold plain values only", at(item));
      node.list.push_back(item.Scalar());
    }
  } else if (yaml.IsScalar()) {
    node.kind = ConfigNode::Kind::kScalar;
    node.scalar = yaml.Scalar();
  }
  return node;
}

}  // namespace

ConfigNode parse_yaml_file(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw usage_error("no such config file", path);
  try {
    YAML::Node yaml = YAML::LoadFile(path);
    if (!yaml.IsMap() && !yaml.IsNull()) throw usage_error("a config file is a map of sections", path + ":1");
    return convert(yaml, path);
  } catch (const YAML::Exception& e) {
    throw usage_error("not valid YAML: " + e.msg, cat(path, ":", e.mark.line + 1));
  }
}

void merge_into(ConfigNode& base, const ConfigNode& overlay) {
  if (overlay.kind == ConfigNode::Kind::kNull) return;
  if (base.kind == ConfigNode::Kind::kMap && overlay.kind == ConfigNode::Kind::kMap) {
    for (const auto& [key, child] : overlay.map) merge_into(base.map[key], child);
    base.where = overlay.where;
    return;
  }
  base = overlay;
}

void apply_set(ConfigNode& base, const std::string& assignment) {
  size_t equals = assignment.find('=');
  std::string where = "--set " + assignment;
  if (equals == std::string::npos || equals == 0) {
    throw usage_error("is not of the form key.path=value", where, "for example: --set sft.optimizer.lr=1e-3");
  }
  ConfigNode value;
  try {
    value = convert(YAML::Load(assignment.substr(equals + 1)), "");
  } catch (const YAML::Exception& e) {
    throw usage_error("not a valid value: " + e.msg, where);
  }
  value.where = where;
  ConfigNode* node = &base;
  for (const auto& key : split(assignment.substr(0, equals), '.')) {
    if (node->kind != ConfigNode::Kind::kMap) {
      *node = ConfigNode{};
      node->kind = ConfigNode::Kind::kMap;
    }
    node->where = where;
    node = &node->map[key];
  }
  *node = value;
}

namespace internal {

void bad_value(const ConfigNode& node, const std::string& path, const std::string& expected) {
  std::string got = node.kind == ConfigNode::Kind::kScalar ? "'" + node.scalar + "'"
                    : node.kind == ConfigNode::Kind::kList ? "a list"
                    : node.kind == ConfigNode::Kind::kMap  ? "a map"
                                                           : "nothing";
  throw usage_error(path + " must be " + expected + ", got " + got, node.where);
}

void bad_name(const ConfigNode& node, const std::string& path, const std::vector<std::string>& names) {
  if (node.kind != ConfigNode::Kind::kScalar) bad_value(node, path, "one of: " + join(names, ", "));
  std::string close = nearest(node.scalar, names);
  throw usage_error(cat(path, " is '", node.scalar, "', not one of: ", join(names, ", ")), node.where,
                    close.empty() ? "" : "did you mean '" + close + "'?");
}

namespace {

std::string leaf(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// What the user may have meant by `path`, best first.
std::vector<std::string> meant_by(const std::string& path, const std::vector<std::string>& known) {
  std::string name = leaf(path), section = path.substr(0, path.size() - name.size());  // "a.b." or "".
  std::vector<std::string> inside, outside, siblings, leaves;
  for (const auto& key : known) {
    bool below = key.starts_with(section);
    bool in_parts = key.size() > name.size() && replace_all(key, ".", "_").ends_with("_" + name);  // a_b for a.b.
    if (leaf(key) == name || in_parts) (below ? inside : outside).push_back(key);
    if (below && key.find('.', section.size()) == std::string::npos) siblings.push_back(leaf(key));
    if (below) leaves.push_back(leaf(key));
  }
  if (!inside.empty()) return inside;
  if (std::string close = nearest(name, siblings); !close.empty()) return {section + close};
  if (!outside.empty()) return outside;
  std::string close = nearest(name, leaves);
  for (const auto& key : known) {
    if (!close.empty() && key.starts_with(section) && leaf(key) == close) inside.push_back(key);
  }
  return inside;
}

}  // namespace

void refuse_unknown_keys(const ConfigNode& node, const std::string& path, const KnownKeys& known) {
  constexpr size_t kOffered = 4;
  const auto& valid = known.valid;
  auto path_of = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  for (const auto& [name, child] : node.map) {  // First: what was renamed explains what else is not known.
    auto it = known.renamed.find(path_of(name));
    if (it == known.renamed.end()) continue;
    throw usage_error("unknown key '" + it->first + "'", child.where, "it is '" + it->second + "' now");
  }
  for (const auto& [name, child] : node.map) {
    std::string key = path_of(name);
    auto holds = [&](const std::string& other) { return other.starts_with(key + "."); };
    if (std::find(valid.begin(), valid.end(), key) != valid.end()) {
      if (std::any_of(valid.begin(), valid.end(), holds)) refuse_unknown_keys(child, key, known);
      continue;
    }
    if (auto it = known.others.find(key); it != known.others.end()) {
      throw usage_error("key '" + key + "' is for " + it->second + " only", child.where);
    }
    std::vector<std::string> meant = meant_by(key, valid);
    if (meant.size() > kOffered) meant.resize(kOffered);
    std::string hint = "did you mean '" + join(meant, "' or '") + "'?";
    if (meant.empty()) {
      std::vector<std::string> here;
      for (const auto& other : valid) {
        if (path.empty() ? other.find('.') == std::string::npos : other == path + "." + leaf(other)) {
          here.push_back(leaf(other));
        }
      }
      hint = "valid keys here: " + join(here, ", ");
    }
    throw usage_error("unknown key '" + key + "'", child.where, hint);
  }
}

bool parse_bool(const ConfigNode& node, const std::string& path) {
  if (node.kind == ConfigNode::Kind::kScalar && node.scalar == "true") return true;
  if (node.kind == ConfigNode::Kind::kScalar && node.scalar == "false") return false;
  bad_value(node, path, "true or false");
}

int64_t parse_int(const ConfigNode& node, const std::string& path) {
  if (node.kind != ConfigNode::Kind::kScalar || node.scalar.empty()) bad_value(node, path, "a whole number");
  char* end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(node.scalar.c_str(), &end, 10);
  if (*end != '\0' || errno != 0) bad_value(node, path, "a whole number");
  return value;
}

double parse_double(const ConfigNode& node, const std::string& path) {
  if (node.kind != ConfigNode::Kind::kScalar || node.scalar.empty()) bad_value(node, path, "a number");
  char* end = nullptr;
  double value = std::strtod(node.scalar.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) bad_value(node, path, "a finite number");
  return value;
}

std::string print_double(double value) {
  for (int digits = 1; digits <= 17; ++digits) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    if (std::strtod(buffer, nullptr) == value) return buffer;
  }
  return cat(value);
}

std::string quote_yaml(const std::string& text) {
  YAML::Emitter out;
  bool plain = !text.empty() && text.find_first_of(":#{}[],&*!|>'\"%@`\n ") == std::string::npos;
  if (plain) {
    out << text;
  } else {
    out << YAML::DoubleQuoted << text;
  }
  return out.c_str();
}

}  // namespace internal
}  // namespace tritonrl
