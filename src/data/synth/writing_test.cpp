// SPDX-License-Identifier: Apache-2.0
// Sources as people write them: every habit occurs, none changes the graph, and solutions never copy Model's name.
#include "data/synth/writing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <set>

#include "base/text.h"
#include "data/python_source.h"
#include "data/synth/graph_synth.h"
#include "data/synth/operators.h"
#include "data/synth/prose.h"
#include "data/tasks/shape_variants.h"

namespace tritonrl::graphs::writing_test {
namespace {

std::vector<Task> drawn(const SynthConfig& config, int64_t count) {
  GraphStream stream(config);
  std::vector<Task> tasks;
  for (int64_t i = 0; i < count; ++i) tasks.push_back(stream.next());
  return tasks;
}

const std::vector<Task>& people() {
  static const std::vector<Task> tasks = drawn({}, 500);
  return tasks;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// "self, in_channels, stride=1" of a class's __init__, "" where it has none.
std::string signature(const std::string& text, const std::string& type) {
  size_t from = text.find(cat("class ", type, "(")), begin = text.find("def __init__(", from);
  if (from == std::string::npos || begin > text.find("def forward(", from)) return "";
  return text.substr(begin + 13, text.find("):\n", begin) - begin - 13);
}

// A model of the stream must not learn from a constant's place what a layer is: people write sizes before, between and
// behind what __init__ takes.
TEST(Writing, ConstantsStandInEveryOrder) {
  SynthConfig config;
  config.layer_share = 1;
  auto line_of = [](const std::string& source, const char* pattern) {
    std::smatch match;
    return std::regex_search(source, match, std::regex(pattern)) ? match.position() : -1;
  };
  int outputs_first = 0, window_first = 0, outputs = 0, windows = 0;
  for (const Task& task : drawn(config, 1500)) {
    const auto image = line_of(task.source, "\\n(height|depth)[a-z_, ]* = [0-9]");
    const auto channels = line_of(task.source, "\\n(out_channels|channels_out|num_filters) = [0-9]");
    const auto window = line_of(task.source, "\\nkernel_size = [(0-9]");
    if (image < 0) continue;
    outputs += channels >= 0;
    outputs_first += channels >= 0 && channels < image;
    windows += window >= 0;
    window_first += window >= 0 && window < image;
  }
  ASSERT_GT(outputs, 50);
  ASSERT_GT(windows, 50);
  EXPECT_GT(outputs_first, outputs / 3);
  EXPECT_LT(outputs_first, outputs * 9 / 10);
  EXPECT_GT(window_first, windows / 12);
  EXPECT_LT(window_first, windows / 2);
}

TEST(Writing, EveryHabitOccursAndNoneAlways) {
  struct Habit {
    const char* what;
    double least, most;
    std::function<bool(const std::string&)> shown;
  };
  auto part = [](const char* text) { return [text](const std::string& source) { return holds(source, text); }; };
  auto like = [](const char* pattern) {
    return [re = std::regex(pattern)](const std::string& source) { return std::regex_search(source, re); };
  };
  const std::vector<Habit> habits = {
      {"super(Model, self)", 0.6, 0.95, part("super(Model, self).__init__()")},
      {"super()", 0.05, 0.4, part("super().__init__()")},
      {"an empty __init__", 0.2, 0.6, part("def __init__(self):\n")},
      {"arguments", 0.3, 0.8, part("def __init__(self, ")},
      {"a docstring of the class", 0.5, 0.95, like("class Model\\(nn.Module\\):\n    \"\"\"")},
      {"arguments described", 0.2, 0.8, like("Args:|:param|Parameters\n")},
      {"results described", 0.2, 0.8, like("Returns:|:return:|Returns\n")},
      {"comments above", 0.05, 0.5, like("\n        # ")},
      {"comments behind", 0.03, 0.4, like("[^ ]  # ")},
      {"hints", 0.25, 0.6, like("def forward\\(self, [a-zA-Z_0-9]+: ")},
      {"hinted numbers", 0.1, 0.5, like("def __init__\\(self.*: (int|float)")},
      {"defaults", 0.2, 0.6, like("def __init__\\(self.*=")},
      {"F imported", 0.1, 0.6, part("import torch.nn.functional as F")},
      {"F spelled out", 0.05, 0.4, like("[^t] torch.nn.functional\\.|\\(torch.nn.functional\\.")},
      {"sizes in lower case", 0.5, 0.95, like("\n[a-z_0-9]+ = [0-9]+\n")},
      {"sizes in upper case", 0.1, 0.45, like("\n[A-Z][A-Z_0-9]* = [0-9]+\n")},
      {"constants behind the class", 0.6, 0.95, like("class Model[^\x01]*\n[a-zA-Z_0-9]+ = ")},
      {"several sizes on a line", 0.03, 0.3, like("\n[a-zA-Z_0-9]+, [a-zA-Z_0-9]+.* = [0-9]+, [0-9]+")},
      {"sizes in a tuple", 0.02, 0.15, part("*input_shape")},
      {"numbers with a name", 0.05, 0.4, like("\n[a-z_0-9]+ = -?[0-9]+\\.[0-9]+\n")},
      {"numbers on self", 0.05, 0.5, like("self\\.([a-z_0-9]+) = \\1\n")},
      {"a shape with a name", 0.002, 0.2, like("_shape = \\(|_shape\\)")},
      {"activations as modules", 0.05, 0.5, like("nn\\.(ReLU|GELU|Sigmoid|Tanh|SiLU|LeakyReLU|Softmax|ELU|Mish)\\(")},
      {"a chain of modules", 0.01, 0.2, part("nn.Sequential(")},
      {"a class of its own", 0.005, 0.2, like("class (Block|Stage|Unit|Body|Inner|Core)\\(")},
      {"one name", 0.3, 0.9, like("\n        ([a-zA-Z_0-9]+) = .*\\b\\1\\b")},
      {"docstrings that say nothing of shapes", 0.05, 0.35, like("any shape|\\(\\*\\)|\\(N, \\*\\)|the usual shape")},
      {"docstrings of another time", 0.03, 0.3, like("\\(M, K\\)|\\(K, N\\)|\\(N, L, D\\)|\\(batch_size, 1\\)")},
      {"dimensions from the end", 0.02, 0.3, part("dim=-1")},
      {"dimensions from the front", 0.05, 0.5, like("dim=[1-4]")},
      {"arguments by name", 0.005, 0.08, like("return \\[\\[.*\\], \\{\"")},
      {"named inputs", 0.2, 0.6, like("def get_inputs\\(\\):\n(    \"\"\".*\"\"\"\n)?    [a-zA-Z_0-9]+ = ")},
  };
  for (const Habit& habit : habits) {
    double count = 0;
    for (const Task& task : people()) count += habit.shown(task.source);
    EXPECT_GE(count / 500, habit.least) << habit.what;
    EXPECT_LE(count / 500, habit.most) << habit.what;
  }
}

TEST(Writing, SolutionsFollowTheirSource) {
  std::map<std::string, int> seen;
  for (const Task& task : people()) {
    EXPECT_EQ(first_syntax_error(task.source), 0) << task.source;
    EXPECT_EQ(first_syntax_error(task.solution), 0) << task.solution;
    EXPECT_FALSE(holds(task.solution, "super(Model,")) << task.solution;
    EXPECT_FALSE(holds(task.solution, "class Model(")) << task.solution;
    for (const char* part : {"super(ModelNew, self)", "super().__init__", "@triton.autotune(",
                             "num_warps=", "num_stages=", "ROWS=2", "ROWS=8", "self, x: torch.Tensor"})
      seen[part] += holds(task.solution, part);
    if (task.solution.empty() || !holds(task.source, "def __init__(self, ")) continue;
    EXPECT_EQ(signature(task.source, "Model"), signature(task.solution, "ModelNew")) << task.source << task.solution;
  }
  for (const auto& [part, count] : seen) EXPECT_GE(count, 5) << part;
}

TEST(Writing, DefaultValuesComeLastAndMayBeLeftOut) {
  int with_defaults = 0, nothing_given = 0, some_left_out = 0, all_given = 0;
  for (const Task& task : people()) {
    std::string list = signature(task.source, "Model");
    if (!holds(list, "=")) continue;
    ++with_defaults;
    size_t at = task.source.rfind("return [") + 8;
    std::string given = task.source.substr(at, task.source.rfind(']') - at);
    nothing_given += given.empty();
    if (holds(given, "(") || holds(list, "(")) continue;  // Commas of tuples.
    auto commas = [](const std::string& text) { return std::count(text.begin(), text.end(), ','); };
    int64_t taken = commas(list), passed = given.empty() ? 0 : commas(given) + 1;
    EXPECT_LE(passed, taken) << task.source;
    some_left_out += passed > 0 && passed < taken;
    all_given += passed == taken;
    bool optional = false;
    for (const std::string& argument : split(list, ',')) {
      EXPECT_TRUE(!optional || holds(argument, "=")) << list;
      optional |= holds(argument, "=");
    }
  }
  EXPECT_GE(with_defaults, 100);  // A fifth: conventional signatures have none, but for thorough ones.
  EXPECT_GE(nothing_given, 20);
  EXPECT_GE(some_left_out, 20);
  EXPECT_GE(all_given, 20);
}

// Of the tasks that begin with a convolution, conventional ones give it its arguments by their usual names, in order.
TEST(Writing, ThreeInFiveAreConventional) {
  int conventional = 0, thorough = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    Writing w = draw_writing(Rng(i).at("writing"));
    conventional += w.conventional;
    thorough += w.conventional && w.hints;
    if (!w.conventional) continue;
    EXPECT_EQ(w.hints, w.forward_doc);
    EXPECT_TRUE(w.named_super && w.class_doc && w.constants_last && !w.one_line);
  }
  EXPECT_NEAR(conventional / 2000.0, 0.6, 0.05);
  EXPECT_NEAR(thorough / 2000.0, 0.24, 0.05);
  SynthConfig config;
  config.dtypes = {"float32"};
  config.level1_share = 0;
  config.layer_share = 1;
  int usual = 0, lines = 0, shapes = 0, all = 0;
  for (const Task& task : GraphStream(config).next(600)) {
    if (!holds(task.source, "nn.Conv2d(") && !holds(task.source, "nn.ConvTranspose2d(")) continue;
    ++all;
    usual += holds(task.source, "def __init__(self, in_channels, out_channels, ");
    lines += holds(task.source, "height, width = ");
    shapes += holds(task.source, "nn.Parameter(torch.randn(bias_shape))");
  }
  EXPECT_GT(all, 150);
  EXPECT_GT(usual, all / 8);
  EXPECT_GT(lines, all / 3);
  EXPECT_GT(shapes, 3);
}

TEST(Writing, SolutionsUseEveryArgument) {
  int arguments = 0;
  for (const Task& task : people()) {
    std::string list = task.solution.empty() ? "" : signature(task.solution, "ModelNew");
    size_t begin = task.solution.find(list + "):\n"), end = task.solution.find("    def forward", begin);
    for (const std::string& argument : split(list, ',')) {
      std::string name = trim(argument.substr(0, argument.find_first_of(":=")));
      if (list.empty() || name == "self" || name.find_first_of("()0123456789") == 0) continue;
      std::string init = task.solution.substr(begin + list.size(), end - begin - list.size());
      EXPECT_NE(replace_word(init, name, ""), init) << name << "\n" << task.solution;
      ++arguments;
    }
  }
  EXPECT_GE(arguments, 800);
}

TEST(Writing, ParametersAreThoseOfTheCallee) {
  auto names = [](const char* callee) {
    std::string out;
    for (const CallParameter& parameter : parameters_of(callee)) out += parameter.name + "=" + parameter.usual + " ";
    return out;
  };
  EXPECT_EQ(names("nn.AvgPool3d"), "kernel_size= stride=None padding=0 ceil_mode=False count_include_pad=True ");
  EXPECT_EQ(names("nn.Linear"), "in_features= out_features= bias=True ");
  EXPECT_EQ(names("nn.Unknown2d"), "");
}

TEST(Writing, GraphsSizesAndSplitsDoNotDependOnIt) {
  SynthConfig bare;
  bare.writing = WritingStyle::kBare;
  auto other = drawn(bare, 500);
  for (size_t i = 0; i < other.size(); ++i) {
    const Task &a = people()[i], &b = other[i];
    EXPECT_EQ(a.graph_hash, b.graph_hash);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.solution.empty(), b.solution.empty());
    EXPECT_FALSE(holds(b.source, "\"\"\""));
    if (a.tiny.empty()) continue;  // Numbers in the text.
    std::multiset<int64_t> here, there;
    for (const auto& [name, value] : a.tiny) here.insert(value);
    for (const auto& [name, value] : b.tiny) there.insert(value);
    EXPECT_EQ(here, there);
    auto constants = module_integers(a.source);
    for (const auto& [name, value] : a.tiny) EXPECT_TRUE(constants.count(name)) << name << "\n" << a.source;
  }
}

TEST(Writing, PlainHasNone) {
  SynthConfig config;
  config.style = SynthStyle::kPlain;
  config.operators = {"core"};
  SynthConfig bare = config;
  bare.writing = WritingStyle::kBare;
  auto a = drawn(config, 50), b = drawn(bare, 50);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(to_json(a[i]), to_json(b[i]));
}

TEST(Writing, ProseHasManySkeletons) {
  std::set<std::string> skeletons;
  TensorGraph graph;
  Node input, relu;
  input.kind = Node::Kind::kInput;
  relu.op = find_operator("hardswish");
  relu.operands = {0};
  graph.nodes = {input, relu};
  graph.outputs = {1};
  Rng rng(3);
  for (int i = 0; i < 4000; ++i) skeletons.insert(class_sentence(graph, Writing::Docs::kTrue, rng));
  EXPECT_GE(skeletons.size(), 600u);
}

TEST(Writing, WordsAreReplacedWhole) {
  EXPECT_EQ(replace_word("N * NN + x.N + N", "N", "rows"), "rows * NN + x.N + rows");
  EXPECT_EQ(replace_word("", "N", "rows"), "");
}

TEST(Writing, EveryFormIsOfItsOperator) {
  int ways = 0;
  for (const Operator& op : operators()) {
    TensorGraph graph;
    Node node;
    node.op = &op;
    node.operands = {0, 0};
    node.ints = {{"transposed", 0}};
    Node input;
    input.kind = Node::Kind::kInput;
    graph.nodes = {input, node};
    auto forms = forms_of(graph, node);
    EXPECT_EQ(forms[0].text, op.torch);
    ways += static_cast<int>(forms.size()) - 1;
    for (const Form& form : forms) {
      bool second = holds(op.torch, "{y}"), third = holds(op.torch, "{z}");
      EXPECT_EQ(holds(form.text, "{y}"), second) << op.name << " " << form.text;
      EXPECT_EQ(holds(form.text, "{z}"), third) << op.name << " " << form.text;
      EXPECT_EQ(form.module.empty(), !holds(form.text, "{self}") || holds(op.torch, "{self}")) << op.name;
    }
  }
  EXPECT_GE(ways, 150);
}

// What the source's __init__ makes, the solution's makes in the same order: layers first, or numbers first.
TEST(Writing, InitKeepsTheOrderOfItsSource) {
  auto made = [](const std::string& text, const std::string& type) {
    size_t from = text.find(cat("class ", type, "(")), end = text.find("def forward(", from);
    const std::string init = text.substr(from, end - from);
    const std::regex line("\n        self\\.([A-Za-z_0-9]+) = ");
    std::vector<std::string> names;
    for (std::sregex_iterator it(init.begin(), init.end(), line), last; it != last; ++it) names.push_back((*it)[1]);
    return names;
  };
  int64_t numbers_first = 0, numbers_last = 0;
  for (const Task& task : people()) {
    if (task.solution.empty()) continue;
    auto source = made(task.source, "Model"), solution = made(task.solution, "ModelNew");
    std::erase_if(source,
                  [&](auto& name) { return std::find(solution.begin(), solution.end(), name) == solution.end(); });
    std::erase_if(solution, [&](auto& name) { return std::find(source.begin(), source.end(), name) == source.end(); });
    EXPECT_EQ(source, solution) << task.source << task.solution;
    size_t from = task.source.find("class Model("), end = task.source.find("def forward(", from);
    const std::string init = task.source.substr(from, end - from);
    std::smatch layer, number;
    if (!std::regex_search(init, layer, std::regex("self\\.\\w+ = nn\\.[A-Z]")) ||
        !std::regex_search(init, number, std::regex("self\\.(\\w+) = \\1\n"))) {
      continue;
    }
    ++(number.position() < layer.position() ? numbers_first : numbers_last);
  }
  EXPECT_GT(numbers_last, numbers_first);
}

// A layer first, then what networks do with it: second operands are mostly the module's own.
TEST(Layers, BeginWithAConvolutionOrALinearLayer) {
  SynthConfig config;
  config.level1_share = config.fusion_share = 0;
  config.layer_share = 1;
  config.only_covered = true;
  int64_t own = 0, binary = 0;
  for (const Task& task : drawn(config, 300)) {
    EXPECT_TRUE(task.name.rfind("conv", 0) == 0 || task.name.rfind("depthwise_conv2d", 0) == 0 ||
                task.name.rfind("linear", 0) == 0 || task.name.rfind("matmul", 0) == 0)
        << task.name;
    EXPECT_GE(task.difficulty, 3);
    binary += std::regex_search(task.name, std::regex("_(add|sub|mul)(_|$)"));
    own += holds(task.source, "nn.Parameter(");
  }
  EXPECT_GT(own, 60);
  EXPECT_GT(own, binary / 2);
}

// Where the wrapper reads every window from its module, no number of one is left in the kernels.
TEST(Layers, WindowsAreReadFromTheModule) {
  SynthConfig config;
  config.level1_share = config.fusion_share = 0;
  config.layer_share = 1;
  config.only_covered = true;
  int64_t whole = 0, convolutions = 0;
  for (const Task& task : drawn(config, 300)) {
    auto count = [](const std::string& text, const char* pattern) {
      const std::regex wanted(pattern);
      return std::distance(std::sregex_iterator(text.begin(), text.end(), wanted), std::sregex_iterator());
    };
    auto windows =
        count(task.source, "nn\\.Conv|nn\\.MaxPool|nn\\.AvgPool|F\\.max_pool|F\\.avg_pool|functional\\.(avg|max)_pool");
    convolutions += holds(task.source, "nn.Conv");
    if (windows == 0 || count(task.solution, "self\\.[^ ]+\\.kernel_size") != windows) continue;
    ++whole;
    const std::string kernels = task.solution.substr(0, task.solution.find("class ModelNew"));
    EXPECT_EQ(count(kernels, "range\\(0, [0-9]"), 0) << task.solution;
    EXPECT_TRUE(holds(kernels, "KW: tl.constexpr")) << task.solution;
    EXPECT_GE(count(task.solution, "\n        out_w[0-9]? = \\("), windows) << task.solution;
  }
  EXPECT_GT(whole, convolutions / 2);
}

}  // namespace
}  // namespace tritonrl::graphs::writing_test
