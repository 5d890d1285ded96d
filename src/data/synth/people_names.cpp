// SPDX-License-Identifier: Apache-2.0
// Names, forms and members of a task as people write it.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "data/synth/operators.h"
#include "data/synth/torch_writer.h"

namespace tritonrl::graphs {

namespace {

using Words = std::vector<std::string>;

std::string free_name(const std::string& wanted, std::set<std::string>& taken) {
  std::string name = wanted;
  for (int i = 2; !taken.insert(name).second; ++i) name = cat(wanted, i);
  return name;
}

std::string type_of_literal(const std::string& literal) {
  if (literal == "True" || literal == "False") return "bool";
  if (literal[0] == '(') return "tuple";
  return literal.find_first_of(".e") == std::string::npos ? "int" : "float";
}

// A number, a truth value or a tuple of numbers.
bool is_literal(const std::string& word) {
  return word == "True" || word == "False" || word == "None" ||
         (word.find_first_of("0123456789") != std::string::npos &&
          word.find_first_not_of("0123456789.e-+(), ") == std::string::npos);
}

// "max_pool2d" as a module is called: "MaxPool2d".
std::string camel_case(const std::string& name) {
  std::string out;
  for (const std::string& word : split(name, '_')) {
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
    out += word.substr(1);
  }
  return out;
}

// "(3, 3)".
std::string repeated(const std::string& value, int count) {
  return cat("(", join(Words(static_cast<size_t>(count), value), ", "), ")");
}

// Builds the names of one task.
class Namer {
 public:
  Namer(const TensorGraph& graph, const Writing& writing, Rng rng) : graph_(graph), writing_(writing), rng_(rng) {
    size_t count = graph.nodes.size();
    naming_.values.resize(count);
    naming_.forms.resize(count);
    naming_.members.resize(count);
    naming_.modules.resize(count);
    naming_.owners.resize(count);
    for (const auto& [name, dim] : graph.symbols) {
      taken_.insert(name);
      sizes_.insert(lower_case(name));
    }
    for (const Node& node : graph.nodes) {
      if (!node.member.empty()) members_.insert(node.member.substr(0, node.member.find('.')));
    }
  }

  Naming run() {
    name_values();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.kind == Node::Kind::kCompute) choose_form(static_cast<int>(i));
      if (node.kind == Node::Kind::kParameter && !node.draw.empty()) own_parameter(static_cast<int>(i));
    }
    order_arguments();
    naming_.wraps = flag(0.5);
    std::vector<std::string> own;
    if (writing_.own_last) own.swap(naming_.state);
    contain();
    naming_.state.insert(naming_.state.end(), own.begin(), own.end());
    return std::move(naming_);
  }

 private:
  bool flag(double p) { return rng_.uniform() < p; }

  void name_values() {
    static const std::vector<Words> kInputs = {{"x", "y", "z", "w"},
                                               {"x", "y", "z", "w"},
                                               {"x", "other", "third", "fourth"},
                                               {"a", "b", "c", "d"},
                                               {"A", "B", "C", "D"},
                                               {"x1", "x2", "x3", "x4"},
                                               {"input_tensor", "second", "third", "fourth"},
                                               {"inputs", "others", "extras", "more"},
                                               {"x", "residual", "extra", "mask"},
                                               {"inp", "aux", "extra", "rest"}};
    static const Words kStems = {"h", "t", "out", "v", "y_", "hidden", "result"};
    Words names = rng_.pick(kInputs);
    if (writing_.conventional) names = kInputs[product_of_inputs(graph_) != nullptr && flag(0.8) ? 4 : 0];
    bool loss = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& n) {
      return n.kind == Node::Kind::kCompute && n.op->family == "loss" && n.op->then_mean;
    });
    if (loss && flag(0.6)) names = {"predictions", "targets", "third", "fourth"};
    if (graph_.title == "attention" && flag(0.7))
      names = flag(0.5) ? Words{"q", "k", "v", "m"} : Words{"query", "key", "value", "mask_"};
    const std::string stem = rng_.pick(kStems);
    bool by_operator = flag(0.15);
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return taken_.count(name) > 0; }))
      names = kInputs[0];
    int count = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.kind == Node::Kind::kInput) {
        bool index = node.type == Type::kInt64 && node.draw.find("({shape},)") != std::string::npos && !loss;
        naming_.values[i] = free_name(index ? "idx" : names[naming_.inputs.size()], taken_);
        naming_.inputs.push_back(static_cast<int>(i));
      } else if (node.kind == Node::Kind::kParameter) {
        naming_.values[i] = "self." + node.member;
      } else {
        naming_.values[i] =
            free_name(by_operator ? node.op->name + "_out" : cat(stem, count ? cat(count) : ""), taken_);
        ++count;
      }
    }
  }

  std::string size_argument(const Dim& dim) {
    if (std::isdigit(static_cast<unsigned char>(dim.text[0]))) return dim.text;
    for (const Argument& known : naming_.arguments) {
      if (known.literal.empty() && known.dim == dim) return known.name;
    }
    std::string name = graph_.symbols.count(dim.text) ? lower_case(dim.text) : "flat_dim";
    naming_.arguments.push_back({free_name(name, arguments_), dim});
    return naming_.arguments.back().name;
  }

  // An argument that holds this literal; one that does already, where it was to be called the same.
  std::string number_argument(const std::string& wanted, const std::string& literal, bool kept_on_self = false) {
    std::string& name = numbers_[wanted + "=" + literal];
    if (name.empty()) {
      name = flag(writing_.conventional ? 0.01 : 0.06) ? invented_name(rng_) : wanted;
      auto used = [&] {
        return sizes_.count(name) || arguments_.count(name) || (kept_on_self && members_.count(name));
      };
      for (int i = 2; used(); ++i) name = cat(wanted, i);
      arguments_.insert(name);
      Argument argument{name, Dim(), literal, type_of_literal(literal)};
      naming_.arguments.push_back(std::move(argument));
    }
    if (kept_on_self) members_.insert(name);
    return name;
  }

  // The same for a number that PyTorch takes as `usual` where nothing is said: the argument may have a default value.
  std::string hyper_parameter(const std::string& wanted, const std::string& literal, const std::string& usual,
                              bool kept_on_self = false) {
    size_t before = naming_.arguments.size();
    std::string name = number_argument(wanted, literal, kept_on_self);
    if (naming_.arguments.size() == before) return name;
    Argument& argument = naming_.arguments.back();
    if (literal == "None" && wanted == "stride") argument.type = "int";
    if (writing_.defaults && flag(usual.empty() ? 0.5 : 0.97)) {
      bool tuple = literal[0] == '(';
      argument.preset = usual.empty() || tuple || flag(0.6) ? literal : usual;
    }
    return name;
  }

  // A call with some of its numbers as arguments of __init__. `reader`: the node whose text in forward() it is, which
  // reads them from self; -1 for a constructor.
  std::string with_arguments(const std::string& text, int reader = -1, const std::string& prefix = "") {
    const Call call = taken_apart(text);
    const std::vector<CallParameter>& parameters = parameters_of(call.head);
    if (parameters.empty()) return text;
    Words values(parameters.size()), written, others;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const std::string& argument = call.arguments[i];
      size_t equals = argument.find('='), place = i;
      if (equals != std::string::npos) {
        auto named = std::find_if(parameters.begin(), parameters.end(), [&](const CallParameter& parameter) {
          return parameter.name == argument.substr(0, equals);
        });
        place = static_cast<size_t>(named - parameters.begin());
      }
      if (place < values.size()) {
        values[place] = equals == std::string::npos ? argument : argument.substr(equals + 1);
      } else {
        others.push_back(argument);
      }
    }
    const bool conv = call.head.rfind("nn.Conv", 0) == 0, norm = call.head.find("Norm") != std::string::npos;
    const bool all_named = (conv || norm) && flag(0.08), tuples = conv && values[2][0] == '(' && flag(0.6);
    const int spatial = call.head.back() == 'd' ? call.head[call.head.size() - 2] - '0' : 0;
    bool by_place = !all_named, named_tail = flag(0.7);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& [name, usual] = parameters[i];
      std::string value = values[i];
      if (value.empty() && !usual.empty() && flag(writing_.listed)) value = usual;
      if (value.empty()) {
        by_place = false;
        continue;
      }
      bool window = name == "kernel_size", own = window || name == "num_groups" || name == "output_size";
      const bool swept = name == "stride" || name == "dilation" || name.find("padding") != std::string::npos;
      const bool one = spatial > 1 && value.find_first_not_of("0123456789") == std::string::npos;
      if (one && (window ? flag(spatial == 2 ? 0.08 : 0.04) : tuples && swept)) value = repeated(value, spatial);
      if ((own || !usual.empty() || name == "stride" || name == "eps") && is_literal(value) &&
          flag(writing_.arguments)) {
        const bool scalar = value[0] != '(';
        value = hyper_parameter(prefix + name, value, usual, reader >= 0);
        if (reader >= 0) {
          naming_.scalars[{reader, name}] = value;
          value = "{" + name + "}";
        } else if (conv && window && one && scalar && flag(0.15)) {
          value = repeated(value, spatial);
        }
      }
      by_place &= !(usual.empty() ? own && flag(0.3) : named_tail);  // Behind a keyword come keywords alone.
      written.push_back(by_place ? value : cat(name, "=", value));
    }
    written.insert(written.end(), others.begin(), others.end());
    return cat(call.head, "(", join(written, ", "), ")");
  }

  // Pools are modules more often than not, whichever way the graph was drawn.
  void choose_pool(int id) {
    const Node& node = graph_[id];
    size_t at = static_cast<size_t>(id);
    Words window = taken_apart(node.module.empty() ? node.torch() : node.module).arguments;
    if (node.module.empty()) window.erase(window.begin());
    static const Words kPrefixes = {"", "pool_", "pool_", "maxpool_", "pooling_"};
    const bool rows = node.shape.size() == 2;  // As the length of one channel.
    const std::string pooled = rows ? "{x}.unsqueeze(1)" : "{x}", back = rows ? ".squeeze(1)" : "";
    if (flag(std::max(0.65, writing_.modules))) {
      naming_.modules[at] =
          with_arguments(cat("nn.", camel_case(node.op->name), "(", join(window, ", "), ")"), -1, rng_.pick(kPrefixes));
      naming_.members[at] = node.member.empty() ? member_name(node, naming_.modules[at]) : node.member;
      naming_.forms[at] = cat("{self}(", pooled, ")", back);
    } else {
      naming_.forms[at] =
          with_arguments(cat("F.", node.op->name, "(", pooled, ", ", join(window, ", "), ")"), id) + back;
    }
  }

  std::string member_name(const Node& node, const std::string& module) {
    static const Words kOthers = {"act", "layer", "fn", "op"};
    std::string name = node.op->name;
    if (node.op->family == "loss" && flag(0.6)) name = flag(0.5) ? "loss_fn" : "criterion";
    static const Words kPools = {"pool", "pool", "pool1", "maxpool", "max_pool", "avg_pool", "pooling", "downsample"};
    if (node.op->family == "pool" && flag(0.7)) name = rng_.pick(kPools);
    if (node.op->name.rfind("adaptive_avg", 0) == 0 && flag(0.4)) name = "global_avg_pool";
    if (flag(writing_.conventional ? 0.01 : 0.1)) name = invented_name(rng_);
    if (node.op->family == "elementwise" && !writing_.conventional && flag(0.25)) name = rng_.pick(kOthers);
    if (module.rfind("nn.Flatten", 0) == 0) name = "flatten";
    return free_name(name, members_);
  }

  void choose_form(int id) {
    const Node& node = graph_[id];
    if (node.op->family == "pool") {
      choose_pool(id);
      return;
    }
    std::vector<Form> forms = forms_of(graph_, node);
    std::vector<Form> modules, texts;
    for (const Form& form : forms) (form.module.empty() ? texts : modules).push_back(form);
    Form form = texts[0];
    if (texts.size() > 1 && flag(writing_.forms)) form = rng_.pick(texts);
    if (!modules.empty() && flag(writing_.modules)) form = rng_.pick(modules);
    size_t at = static_cast<size_t>(id);
    std::string& module = naming_.modules[at];
    if (!node.module.empty()) {
      module = node.module;
      for (size_t i = 0; i < node.module_dims.size(); ++i)
        module = replace_all(module, cat("{", i, "}"), size_argument(node.module_dims[i]));
      module = with_arguments(module);
      naming_.members[at] = node.member;
    } else {
      Named in_module = numbers(id, form);
      if (!form.module.empty()) {
        module = torch_expression(graph_, node, form.module, {}, in_module);
        naming_.members[at] = member_name(node, module);
      }
    }
    naming_.forms[at] = form.text;
    if (form.text == "torch.clamp({x}, min={a})" && naming_.scalars.count({id, "a"}) && flag(0.3)) {
      naming_.forms[at] = "torch.clamp({x}, {a}, {upper})";
      naming_.scalars[{id, "upper"}] = number_argument("max_value", "None", true);
    }
  }

  // Numbers of an operator that become arguments: of its module's constructor, or kept on self.
  Named numbers(int id, const Form& form) {
    const Node& node = graph_[id];
    const std::string& where = form.module.empty() ? form.text : form.module;
    Named out = written(writing_);
    auto give = [&](const std::string& key, const std::string& name, const std::string& literal,
                    const std::string& usual) {
      if (!flag(writing_.arguments)) return;
      bool kept = form.module.empty() || key == "a" || key == "b";
      std::string argument = hyper_parameter(name, literal, usual, kept);
      out[key] = argument;
      if (kept) naming_.scalars[{id, key}] = argument;
    };
    const char* const keys[] = {"a", "b"};
    for (size_t i = 0; i < node.numbers.size() && i < 2; ++i) {
      if (where.find(cat("{", keys[i], "}")) == std::string::npos) continue;
      give(keys[i], scalar_name(node.op->name, keys[i], rng_), python_float(node.numbers[i]),
           usual_scalar(node.op->name, keys[i]));
    }
    bool one_dim = node.dims.size() == 1 && node.op->work != Work::kWindow;
    bool over = where.find("{over}") != std::string::npos || where.find("{of}") != std::string::npos;
    if (one_dim && (over || where.find("{dim}") != std::string::npos) && flag(0.6)) {
      std::string value = torch_expression(graph_, node, "{dim}", {}, written(writing_));
      if (!over || graph_[node.operands[0]].shape.size() > 1) {
        std::string name = over && flag(0.3) ? "reduce_dim" : flag(0.2) ? "axis" : "dim";
        give("dim", name, value, "");
        bool keep = node.ints.count("keepdim") && node.ints.at("keepdim");
        over &= node.op->name != "cosine_similarity";  // It takes none.
        if (over && (keep || flag(writing_.listed))) give("keepdim", "keepdim", keep ? "True" : "False", "False");
      }
    }
    return out;
  }

  void own_parameter(int id) {
    const Node& node = graph_[id];
    const std::string type = node.type == Type::kFloat32 ? "" : cat(", dtype=", torch_name(node.type));
    std::string tensor;
    if (elements(node.shape) == 1 && flag(0.6)) {  // One number.
      std::string value = python_float(rng_.pick(std::vector<double>{0.5, 2.0, 1.5, 0.1, 3.0}));
      if (flag(writing_.arguments)) value = number_argument(node.member, value);
      tensor = flag(0.6) ? cat("torch.tensor(", value, type, ")") : cat("torch.ones(1", type, ") * ", value);
    } else if (writing_.arguments > 0 && flag(writing_.conventional ? 0.9 : 0.7)) {
      std::string shape = cat("(", shape_text(node.shape), node.shape.size() == 1 ? ",)" : ")");
      tensor =
          cat(flag(0.85) ? "torch.randn(" : "torch.ones(", number_argument(node.member + "_shape", shape), type, ")");
    } else {
      Words sizes;
      for (const Dim& dim : node.shape) sizes.push_back(size_argument(dim));
      tensor = cat("torch.randn(", join(sizes, ", "), type, ")");
    }
    naming_.state.push_back(cat("self.", node.member, " = nn.Parameter(", tensor, ")"));
  }

  // Arguments with a default value go last, and get_init_inputs() may leave out the last ones that keep it.
  void order_arguments() {
    std::vector<Argument>& arguments = naming_.arguments;
    std::stable_partition(arguments.begin(), arguments.end(), [](const Argument& a) { return a.preset.empty(); });
    size_t least = arguments.size();
    while (least > 0 && !arguments[least - 1].preset.empty() &&
           arguments[least - 1].preset == arguments[least - 1].literal)
      --least;
    size_t spare = arguments.size() - least;
    naming_.given = least + (flag(0.6) ? 0 : flag(0.5) ? spare : static_cast<size_t>(rng_.below(spare + 1)));
  }

  // Does the solution need the node's module, for its parameters or what they say?
  bool has_state(int id) const {
    if (writing_.pools_kept && graph_[id].op->work == Work::kWindow) return true;
    return std::any_of(graph_[id].operands.begin(), graph_[id].operands.end(), [&](int operand) {
      return graph_[operand].kind == Node::Kind::kParameter && graph_[operand].draw.empty();
    });
  }

  // Modules that follow each other go into one container; the others stand for themselves.
  void contain() {
    std::vector<int> run;
    std::vector<bool> inside(graph_.nodes.size(), false);
    if (writing_.container != Writing::Container::kNone) {
      for (size_t i = 0; i < graph_.nodes.size(); ++i) {
        if (naming_.modules[i].empty() || naming_.forms[i] != "{self}({x})") continue;
        std::vector<int> chain = {static_cast<int>(i)};
        for (;;) {
          auto users = graph_.users(chain.back());
          if (users.size() != 1 || graph_.is_output(chain.back())) break;
          size_t next = static_cast<size_t>(users[0]);
          if (naming_.modules[next].empty() || naming_.forms[next] != "{self}({x})") break;
          chain.push_back(users[0]);
        }
        if (chain.size() > run.size()) run = chain;
      }
    }
    bool stateful = std::any_of(run.begin(), run.end(), [&](int id) { return has_state(id); });
    if (run.size() >= 2 && stateful) {
      for (int id : run) inside[static_cast<size_t>(id)] = true;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (naming_.modules[i].empty()) continue;
      if (!inside[i]) {
        if (has_state(static_cast<int>(i))) naming_.owners[i] = "self." + naming_.members[i];
        (has_state(static_cast<int>(i)) ? naming_.state : naming_.rest)
            .push_back(cat("self.", naming_.members[i], " = ", naming_.modules[i]));
      } else if (static_cast<int>(i) == run[0]) {
        if (writing_.container == Writing::Container::kSequential) {
          sequential(run);
        } else {
          block(run);
        }
      }
    }
  }

  void rename_parameters(int id, const std::string& owner) {
    const Node& node = graph_[id];
    for (int operand : node.operands) {
      const Node& parameter = graph_[operand];
      if (parameter.kind == Node::Kind::kParameter && parameter.draw.empty())
        naming_.values[static_cast<size_t>(operand)] = "self." + owner + parameter.member.substr(node.member.size());
    }
  }

  void written_by_last(const std::vector<int>& run, const std::string& member) {
    for (int id : run) naming_.forms[static_cast<size_t>(id)] = "";
    naming_.forms[static_cast<size_t>(run.back())] = "{self}({x})";
    naming_.members[static_cast<size_t>(run.back())] = member;
  }

  void sequential(const std::vector<int>& run) {
    static const Words kNames = {"net", "layers", "model", "seq", "body", "stack"};
    std::string name = free_name(rng_.pick(kNames), members_);
    std::string text = cat("self.", name, " = nn.Sequential(\n");
    for (size_t k = 0; k < run.size(); ++k) {
      text += cat("            ", naming_.modules[static_cast<size_t>(run[k])], ",\n");
      rename_parameters(run[k], cat(name, "[", k, "]"));
      naming_.owners[static_cast<size_t>(run[k])] = cat("self.", name, "[", k, "]");
    }
    naming_.state.push_back(text + "        )");
    written_by_last(run, name);
  }

  // A class of its own, which takes the arguments that its modules name.
  void block(const std::vector<int>& run) {
    static const Words kClasses = {"Block", "Stage", "Unit", "Body", "Inner", "Core"};
    std::string type = rng_.pick(kClasses), name = free_name(lower_case(type), members_);
    std::string all;
    for (int id : run) all += naming_.modules[static_cast<size_t>(id)] + "\n";
    Words taken;
    for (const Argument& argument : naming_.arguments) {
      // Keywords are no names that are read: "stride=stride" reads it once.
      if (replace_word(replace_all(all, argument.name + "=", "_="), argument.name, "\x02").find('\x02') !=
          std::string::npos)
        taken.push_back(argument.name);
    }
    std::string gap = writing_.wide ? "\n\n" : "\n";
    std::string list = taken.empty() ? "" : ", " + join(taken, ", ");
    auto head = [&](bool named) {
      return cat("class ", type, "(nn.Module):\n    def __init__(self", list, "):\n        super(",
                 named ? type + ", self" : "", ").__init__()\n");
    };
    std::string init, kept, forward = "    def forward(self, x):\n";
    for (size_t k = 0; k < run.size(); ++k) {
      size_t at = static_cast<size_t>(run[k]);
      std::string line = cat("        self.", naming_.members[at], " = ", naming_.modules[at], "\n");
      init += line;
      if (has_state(run[k])) kept += line;
      bool last = k + 1 == run.size();
      forward += cat("        ", last ? "return " : "x = ", "self.", naming_.members[at], "(x)\n");
      rename_parameters(run[k], name + "." + naming_.members[at]);
      if (has_state(run[k])) naming_.owners[at] = cat("self.", name, ".", naming_.members[at]);
    }
    naming_.classes = cat(head(writing_.named_super), init, "\n", forward, gap);
    naming_.new_classes = head(writing_.new_named_super) + kept;
    naming_.state.push_back(cat("self.", name, " = ", type, "(", join(taken, ", "), ")"));
    written_by_last(run, name);
  }

  const TensorGraph& graph_;
  const Writing& writing_;
  Rng rng_;
  Naming naming_;
  std::set<std::string> taken_, members_, arguments_, sizes_;  // Names in use; sizes: as arguments.
  std::map<std::string, std::string> numbers_;                 // Arguments by "wanted name=literal".
};

}  // namespace

std::string Naming::signature(bool hints) const {
  Words out = {"self"};
  for (const Argument& argument : arguments) {
    std::string text = argument.name + (hints ? ": " + argument.type : "");
    if (!argument.preset.empty()) text += (hints ? " = " : "=") + argument.preset;
    out.push_back(text);
  }
  std::string list = join(out, ", ");
  size_t middle = list.find(", ", list.size() * 2 / 3);
  if (!wraps || list.size() < 100 || middle == std::string::npos) return list;
  return cat(list.substr(0, middle + 1), "\n                 ", list.substr(middle + 2));
}

Naming name_as_people(const TensorGraph& graph, const Writing& writing, Rng rng) {
  return Namer(graph, writing, rng).run();
}

}  // namespace tritonrl::graphs
