// SPDX-License-Identifier: Apache-2.0
#include "app/ablate/ablation.h"

#include <algorithm>
#include <set>

#include "app/assemble.h"
#include "app/config.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

struct MatrixConfig {
  std::string name = "ablation", folder = "runs";
  std::vector<std::string> base;
  std::vector<int64_t> seeds = {1}, corner_seeds;

  template <class V>
  void for_each_field(V& v) {
    v("name", name, "of the ablation's folder");
    v("folder", folder, "where that lies");
    v("base", base, "config files that every cell begins with");
    v("seeds", seeds, "run.seed of every cell");
    v("corner_seeds", corner_seeds, "of the cells with all axes at their first, or last, value; empty = seeds");
  }
};

std::string absolute(const std::string& file, const fs::path& matrix) {
  fs::path path = fs::path(file).is_absolute() ? fs::path(file) : matrix.parent_path() / file;
  if (!fs::exists(path)) throw usage_error("no such config file: " + file, matrix.string());
  return path.lexically_normal().string();
}

// "on = multi_input.yaml, rl.steps=3".
AblationAxis::Value parse_value(const std::string& text, const fs::path& matrix) {
  AblationAxis::Value value;
  size_t equals = text.find(" = ");
  value.name = trim(text.substr(0, equals));
  bool plain = !value.name.empty() && std::all_of(value.name.begin(), value.name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  });
  if (!plain) throw usage_error(cat("a value's name may hold letters, digits, _ . -: ", text), matrix.string());
  if (equals == std::string::npos) return value;
  std::string overlays = text.substr(equals + 3);
  for (size_t begin = 0, depth = 0, i = 0; i <= overlays.size(); ++i) {
    char c = i < overlays.size() ? overlays[i] : ',';
    depth += c == '[' || c == '{';
    depth -= c == ']' || c == '}';
    if (c != ',' || depth > 0) continue;
    std::string overlay = trim(overlays.substr(begin, i - begin));
    begin = i + 1;
    if (overlay.empty()) continue;
    if (overlay.find('=') != std::string::npos) {
      value.sets.push_back(overlay);
    } else {
      value.files.push_back(absolute(overlay, matrix));
    }
  }
  return value;
}

void add_keys(const ConfigNode& node, const std::string& path, std::set<std::string>* keys) {
  for (const auto& [name, child] : node.map) {
    std::string at = path.empty() ? name : cat(path, ".", name);
    child.kind == ConfigNode::Kind::kMap ? add_keys(child, at, keys) : void(keys->insert(at));
  }
}

// Every key that some value of the axis sets.
std::set<std::string> keys_of(const AblationAxis& axis) {
  std::set<std::string> keys;
  for (const auto& value : axis.values) {
    ConfigNode root;
    root.kind = ConfigNode::Kind::kMap;
    for (const std::string& file : value.files) merge_into(root, parse_yaml_file(file));
    for (const std::string& set : value.sets) apply_set(root, set);
    add_keys(root, "", &keys);
  }
  return keys;
}

void refuse_contradictions(const std::vector<AblationAxis>& axes, const fs::path& file) {
  std::map<std::string, std::string> owner;
  for (const AblationAxis& axis : axes) {
    for (const std::string& key : keys_of(axis)) {
      for (const auto& [other, name] : owner) {
        bool same = other == key || other.rfind(key + ".", 0) == 0 || key.rfind(other + ".", 0) == 0;
        if (same && name != axis.name) {
          throw usage_error(cat("axes ", name, " and ", axis.name, " both set ", key), file.string(),
                            "their effects could not be told apart");
        }
      }
      owner[key] = axis.name;
    }
  }
}

// What has to be the same for a cell to take over tasks, evaluation of the base model, and SFT.
std::string beginning_of(const Config& config) {
  return cat(to_yaml(config.policy), "|", to_yaml(config.lora), "|", to_yaml(config.data.synth), "|",
             to_yaml(config.data.split), "|", to_yaml(config.data.train), "|", to_yaml(config.data.rl), "|",
             to_yaml(config.data.heldout), "|", config.data.prompt, "|", to_yaml(config.sft), "|",
             to_yaml(config.eval));
}

}  // namespace

Ablation load_ablation(const fs::path& file, const std::vector<std::string>& sets) {
  ConfigNode root = parse_yaml_file(file.string());
  ConfigNode axes;
  if (auto it = root.map.find("axes"); it != root.map.end()) {
    axes = it->second;
    root.map.erase(it);
  }
  MatrixConfig matrix;
  read_config(matrix, root);
  if (matrix.seeds.empty()) throw usage_error("seeds must name one at least", file.string());
  Ablation ablation;
  ablation.name = matrix.name;
  ablation.folder = fs::path(matrix.folder) / matrix.name;
  for (const auto& [name, node] : axes.map) {
    if (node.kind != ConfigNode::Kind::kList || node.list.size() < 2) {
      throw usage_error(cat("axis ", name, " needs a list of two values or more"), node.where);
    }
    AblationAxis axis{name, {}};
    for (const std::string& text : node.list) {
      axis.values.push_back(parse_value(text, file));
      const auto& value = axis.values.back();
      if (axis.values.size() > 1 && value.files.empty() && value.sets.empty()) {
        throw usage_error(cat("axis ", name, ": ", value.name, " changes nothing"), node.where,
                          "write VALUE = FILE.yaml, or VALUE = key=value");
      }
    }
    ablation.axes.push_back(std::move(axis));
  }
  if (ablation.axes.empty()) throw usage_error("the matrix has no axes", file.string());
  refuse_contradictions(ablation.axes, file);

  std::vector<std::string> base;
  for (const std::string& one : matrix.base) base.push_back(absolute(one, file));
  auto finish = [&](AblationCell& cell) {
    cell.folder = ablation.folder / cell.name;
    for (const std::string& set : sets) cell.sets.push_back(set);
    for (const std::string& set : {cat("run.folder=", internal::quote_yaml(ablation.folder.string())),
                                   cat("run.name=", internal::quote_yaml(cell.name)), cat("run.seed=", cell.seed),
                                   std::string("eval.verifier=full")}) {
      cell.sets.push_back(set);
    }
  };
  auto load = [&](const AblationCell& cell) {
    try {
      auto config = load_config<Config>(cell.files, cell.sets);
      check_choices(config);
      return config;
    } catch (const Error& error) {
      throw usage_error(cat("cell ", cell.name, ": ", error.message()), error.where(), error.hint());
    }
  };
  ablation.shared = {"shared", {}, matrix.seeds[0], base, {}, {}};
  finish(ablation.shared);
  ablation.shared.sets.push_back("rl.steps=0");
  std::string beginning = beginning_of(load(ablation.shared));

  size_t count = 1;
  for (const AblationAxis& axis : ablation.axes) count *= axis.values.size();
  for (size_t index = 0; index < count; ++index) {
    AblationCell cell;
    cell.files = base;
    bool first = true, last = true;
    size_t rest = index;
    std::vector<std::string> parts;
    for (const AblationAxis& axis : ablation.axes) {
      size_t at = rest % axis.values.size();
      rest /= axis.values.size();
      const auto& value = axis.values[at];
      first = first && at == 0;
      last = last && at + 1 == axis.values.size();
      cell.setting[axis.name] = value.name;
      cell.files.insert(cell.files.end(), value.files.begin(), value.files.end());
      cell.sets.insert(cell.sets.end(), value.sets.begin(), value.sets.end());
      parts.push_back(cat(axis.name, "-", value.name));
    }
    bool corner = (first || last) && !matrix.corner_seeds.empty();
    for (int64_t seed : corner ? matrix.corner_seeds : matrix.seeds) {
      AblationCell one = cell;
      one.seed = seed;
      one.name = cat(join(parts, "_"), "_seed-", seed);
      finish(one);
      one.sets.push_back("rl.audit=true");
      if (beginning_of(load(one)) == beginning) {
        one.sets.push_back(cat("run.start_from=", internal::quote_yaml(ablation.shared.folder.string())));
      }
      load(one);
      ablation.cells.push_back(std::move(one));
    }
  }
  return ablation;
}

}  // namespace tritonrl
