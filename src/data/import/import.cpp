// SPDX-License-Identifier: Apache-2.0
#include "data/import/import.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/python_source.h"
#include "data/syntax_tree.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxSource = 1 << 20;
constexpr int kMaxNesting = 100;  // Of brackets: parsers and walkers recurse.

Converted rejected(std::string id, std::string kind, std::string reason) {
  Converted out;
  out.id = std::move(id);
  out.kind = std::move(kind);
  out.reason = std::move(reason);
  return out;
}

// A text field, "" where it is absent or null. Numbers count as texts (ids).
std::string text_of(const Json& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto it = fields.find(name);
    if (it == fields.end() || it->is_null()) continue;
    if (it->is_string()) return it->get<std::string>();
    if (it->is_number_integer()) return it->dump();
  }
  return "";
}

// "" or why a text cannot be a source at all.
std::string unfit(const std::string& source) {
  if (source.size() > kMaxSource) return cat("is longer than ", human_bytes(static_cast<double>(kMaxSource)));
  if (valid_utf8(source) != source) return "is not valid UTF-8";
  if (source.find('\0') != std::string::npos) return "holds a zero byte";
  int depth = 0, deepest = 0;
  for (char c : source) {
    if (c == '(' || c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return deepest > kMaxNesting ? "nests brackets too deeply" : "";
}

// Rejects what cannot be a task. The task itself is returned when it can.
Converted checked(Task task) {
  for (const auto& [what, text] : {std::pair("source", &task.source), std::pair("solution", &task.solution)}) {
    std::string problem = unfit(*text);
    if (!problem.empty()) return rejected(task.id, "bad_row", cat("the ", what, " ", problem));
    if (int64_t line = first_syntax_error(*text); line > 0) {
      return rejected(task.id, "syntax_error", cat("the ", what, " is not valid Python (line ", line, ")"));
    }
  }
  auto defined = top_level_definitions(task.source);
  for (const char* name : {"Model", "get_inputs", "get_init_inputs"}) {
    if (!defined.count(name)) return rejected(task.id, "no_class", cat("the source defines no ", name));
  }
  if (!task.solution.empty() && !top_level_definitions(task.solution).count("ModelNew")) {
    return rejected(task.id, "no_class", "the solution defines no class ModelNew");
  }
  if (task.graph_hash.empty()) task.graph_hash = graph_hash_of_source(task.source);
  Converted out;
  out.id = task.id;
  out.task = std::move(task);
  return out;
}

// ["MIT", "BSD"] or "MIT" -> "MIT AND BSD", "MIT".
std::string licences_of(const Json& fields) {
  auto it = fields.find("licenses");
  if (it == fields.end()) it = fields.find("license");
  if (it == fields.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  std::vector<std::string> names;
  if (it->is_array()) {
    for (const Json& name : *it) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  return join(names, " AND ");
}

struct Edit {
  uint32_t start, end;
  std::string text;
};

std::string apply(const std::string& source, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.start > b.start; });
  std::string out = source;
  for (const Edit& edit : edits) out.replace(edit.start, edit.end - edit.start, edit.text);
  return out;
}

Edit replacing(TSNode node, std::string text) {
  return {ts_node_start_byte(node), ts_node_end_byte(node), std::move(text)};
}

// The function or class of that name at module level, or a null node.
TSNode definition_of(const SyntaxTree& tree, TSNode body, const std::string& name) {
  TSNode found = {};
  for_each_child(body, [&](TSNode node) {
    TSNode definition = undecorated(node);
    if (is_definition(definition) && tree.text_of_field(definition, "name") == name) found = definition;
  });
  return found;
}

struct Parameter {
  std::string name, fallback;  // The text of its default, "" = none.
};

// Of __init__, without self. False where it takes *args or **kwargs or is not there.
bool parameters_of_init(const SyntaxTree& tree, TSNode model, std::vector<Parameter>* out) {
  TSNode init = definition_of(tree, SyntaxTree::child(model, "body"), "__init__");
  if (ts_node_is_null(init)) return false;
  TSNode list = SyntaxTree::child(init, "parameters");
  bool plain = true;
  for (uint32_t i = 0; i < ts_node_named_child_count(list); ++i) {
    TSNode node = ts_node_named_child(list, i);
    std::string_view type = type_of(node);
    if (type == "comment") continue;
    if (type == "identifier") {
      out->push_back({tree.text(node), ""});
    } else if (type == "default_parameter" || type == "typed_default_parameter") {
      out->push_back({tree.text_of_field(node, "name"), tree.text_of_field(node, "value")});
    } else if (type == "typed_parameter" && type_of(ts_node_named_child(node, 0)) == "identifier") {
      out->push_back({tree.text(ts_node_named_child(node, 0)), ""});
    } else {
      plain = false;  // *args, **kwargs, keyword-only.
      break;
    }
  }
  if (out->empty()) return false;
  out->erase(out->begin());
  return plain;
}

}  // namespace

std::string rename_class(const std::string& source, const std::string& entry_point, const std::string& name) {
  if (entry_point == name) return source;
  SyntaxTree tree(source);
  std::map<std::string, std::string> names = {{entry_point, name}};
  if (top_level_definitions(source).count(name)) names[name] = "Inner" + name;
  std::vector<Edit> edits;
  std::function<void(TSNode)> visit = [&](TSNode node) {
    if (type_of(node) == "identifier") {
      auto it = names.find(tree.text(node));
      if (it != names.end()) edits.push_back(replacing(node, it->second));
      return;
    }
    TSNode skipped = {};
    if (type_of(node) == "attribute") skipped = SyntaxTree::child(node, "attribute");
    if (type_of(node) == "keyword_argument") skipped = SyntaxTree::child(node, "name");
    for_each_child(node, [&](TSNode c) {
      if (ts_node_is_null(skipped) || !ts_node_eq(c, skipped)) visit(c);
    });
  };
  visit(tree.root());
  return apply(source, std::move(edits));
}

std::string plain_init_inputs(const std::string& source, std::string* problem) {
  SyntaxTree tree(source);
  auto give_up = [&](const std::string& why) {
    *problem = why;
    return std::string();
  };
  TSNode function = definition_of(tree, tree.root(), "get_init_inputs");
  TSNode model = definition_of(tree, tree.root(), "Model");
  if (ts_node_is_null(function) || ts_node_is_null(model)) return give_up("there is no Model or no get_init_inputs()");
  TSNode value = {};
  int returns = 0;
  for_each_node(function, [&](TSNode node) {
    if (type_of(node) != "return_statement" || ts_node_named_child_count(node) == 0) return;
    value = ts_node_named_child(node, 0);
    ++returns;
  });
  if (returns != 1) return give_up("get_init_inputs() has not exactly one return");
  bool pair = (type_of(value) == "list" || type_of(value) == "tuple") && ts_node_named_child_count(value) == 2 &&
              type_of(ts_node_named_child(value, 0)) == "list" &&
              type_of(ts_node_named_child(value, 1)) == "dictionary";
  if (!pair) return source;  // A plain list already.
  std::vector<std::string> arguments;
  TSNode positional = ts_node_named_child(value, 0), keywords = ts_node_named_child(value, 1);
  for (uint32_t i = 0; i < ts_node_named_child_count(positional); ++i) {
    arguments.push_back(tree.text(ts_node_named_child(positional, i)));
  }
  std::map<std::string, std::string> given;
  for (uint32_t i = 0; i < ts_node_named_child_count(keywords); ++i) {
    TSNode item = ts_node_named_child(keywords, i);
    TSNode key = type_of(item) == "pair" ? SyntaxTree::child(item, "key") : TSNode{};
    if (ts_node_is_null(key) || type_of(key) != "string") return give_up("its keyword arguments are not literals");
    std::string name = tree.text(key);
    given[name.substr(1, name.size() - 2)] = tree.text_of_field(item, "value");
  }
  if (!given.empty()) {
    std::vector<Parameter> parameters;
    bool plain = parameters_of_init(tree, model, &parameters);
    for (size_t i = arguments.size(); i < parameters.size() && !given.empty(); ++i) {
      auto it = given.find(parameters[i].name);
      if (it != given.end()) {
        arguments.push_back(it->second);
        given.erase(it);
      } else if (!parameters[i].fallback.empty()) {
        arguments.push_back(parameters[i].fallback);
      } else {
        return give_up(cat("__init__ needs ", parameters[i].name, ", which get_init_inputs() does not give"));
      }
    }
    if (!given.empty()) {
      return give_up(cat("the keyword argument ", given.begin()->first, " has no place in the order of __init__",
                         plain ? "" : " (which takes *args or **kwargs, or is inherited)"));
    }
  }
  return apply(source, {replacing(value, cat("[", join(arguments, ", "), "]"))});
}

Converted convert_kernelbench(const Row& row) {
  const Json& fields = row.fields;
  std::string code = text_of(fields, {"code"});
  auto whole = [&](const char* name) {
    return fields.contains(name) && fields[name].is_number_integer() ? fields[name].get<int64_t>() : -1;
  };
  int64_t level = whole("level"), problem = whole("problem_id");
  if (code.empty() || level < 1 || level > 9 || problem < 0) {
    return rejected("", "bad_row", "the row lacks code, level (1 to 9) or problem_id");
  }
  Task task;
  std::string number = cat(problem);
  task.id = cat("kernelbench/", level, "/", std::string(number.size() < 3 ? 3 - number.size() : 0, '0'), number);
  task.level = static_cast<int>(level);
  task.name = text_of(fields, {"name"});
  task.source = std::move(code);
  task.origin = cat("KernelBench level ", level, " problem ", problem);
  task.licence = "MIT";
  return checked(std::move(task));
}

Converted convert_kernelbook(const Row& row) {
  const Json& fields = row.fields;
  std::string entry = text_of(fields, {"entry_point"}), python = text_of(fields, {"python_code"}),
              triton = text_of(fields, {"triton_code"}), uuid = text_of(fields, {"uuid"});
  std::string id = cat("kernelbook/", uuid.empty() ? cat(row.number) : uuid);
  for (const auto& [name, text] :
       {std::pair("entry_point", &entry), std::pair("python_code", &python), std::pair("triton_code", &triton)}) {
    if (trim(*text).empty()) return rejected(id, "bad_row", cat("the row has no ", name));
  }
  for (const auto& [name, text] : {std::pair("python_code", &python), std::pair("triton_code", &triton)}) {
    std::string problem = unfit(*text);
    if (!problem.empty()) return rejected(id, "bad_row", cat(name, " ", problem));
    if (int64_t line = first_syntax_error(*text); line > 0) {
      return rejected(id, "syntax_error", cat(name, " is not valid Python (line ", line, ")"));
    }
  }
  if (!top_level_definitions(python).count(entry)) {
    return rejected(id, "no_class", cat("python_code defines no class ", entry));
  }
  if (!top_level_definitions(triton).count(entry + "New")) {
    return rejected(id, "no_class", cat("triton_code defines no class ", entry, "New"));
  }
  if (triton.find("triton.jit") == std::string::npos) {
    return rejected(id, "no_kernel", "triton_code has no Triton kernel (all of it is library calls)");
  }
  Task task;
  task.id = id;
  task.name = entry;
  std::string problem;
  task.source = plain_init_inputs(rename_class(python, entry, "Model"), &problem);
  if (task.source.empty()) return rejected(id, "arguments", problem);
  task.solution = rename_class(triton, entry + "New", "ModelNew");
  if (triton.find("extern_kernels.") != std::string::npos) task.flags.push_back("extern_kernels");
  std::string repo = text_of(fields, {"repo_name"}), sha = text_of(fields, {"sha"});
  task.origin = cat("KernelBook", repo.empty() ? "" : ": " + repo, sha.empty() ? "" : "@" + sha);
  task.licence = licences_of(fields);
  return checked(std::move(task));
}

Converted convert_pair(const Row& row) {
  const Json& fields = row.fields;
  Json json = fields;
  json["source"] = text_of(fields, {"source", "reference"});
  json["solution"] = text_of(fields, {"solution", "triton"});
  json["licence"] = text_of(fields, {"licence", "license"});
  std::string source = json["source"].get<std::string>(), id = text_of(fields, {"id"});
  if (id.empty()) id = "import/" + content_hash(source).substr(0, 12);
  json["id"] = id;
  if (trim(source).empty()) return rejected(id, "bad_row", "the row has no source");
  if (!json.contains("level")) json["level"] = 1;
  // The text first: what follows parses it.
  Task raw;
  raw.id = id;
  raw.source = source;
  raw.solution = json["solution"].get<std::string>();
  Converted first = checked(std::move(raw));
  if (!first.task) return first;
  try {
    Task task = task_from_json(json, "");
    task.recorded = {};  // Ours to find out.
    task.graph_hash.clear();
    if (task.origin.empty()) task.origin = "import";
    return checked(std::move(task));
  } catch (const Error& error) {
    return rejected(id, "bad_row", error.message());
  }
}

}  // namespace tritonrl
