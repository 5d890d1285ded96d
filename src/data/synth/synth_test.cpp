// SPDX-License-Identifier: Apache-2.0
// Operator graphs: what is drawn is valid, new and the same for the same seed; what is written computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/process/build_paths.h"
#include "base/text.h"
#include "data/python_source.h"
#include "data/synth/coverage.h"
#include "data/synth/draw.h"
#include "data/synth/graph_synth.h"
#include "data/synth/launch_plan.h"
#include "data/synth/operators.h"
#include "data/synth/torch_writer.h"
#include "data/synth/triton_writer.h"
#include "data/tasks/task_facts.h"

namespace tritonrl::graphs::graphs_test {
namespace {

std::vector<Task> make(const SynthConfig& config, int64_t count) { return GraphStream(config).next(count); }

TEST(Operators, TableIsSound) {
  std::set<std::string> names;
  int covered = 0;
  for (const Operator& op : operators()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name << " twice";
    EXPECT_FALSE(op.torch.empty()) << op.name;
    EXPECT_FALSE(op.family.empty()) << op.name;
    EXPECT_TRUE(op.build != nullptr || op.weight == 0) << op.name;
    EXPECT_EQ(find_operator(op.name), &op);
    bool has_text = op.work != Work::kMove && op.work != Work::kOther;
    EXPECT_EQ(has_text, !op.triton.empty()) << op.name;
    covered += op.work != Work::kOther;
  }
  EXPECT_GE(names.size(), 130u);
  EXPECT_GE(covered, 120);
  EXPECT_EQ(find_operator("no_such_operator"), nullptr);
}

TEST(Graphs, EveryOperatorIsDrawnAndParses) {
  SynthConfig config;
  config.dtypes = {"float32", "float16", "bfloat16"};
  config.max_nodes = 4;
  std::set<std::string> missing;
  for (const Operator& op : operators()) missing.insert(op.name);
  SynthConfig settled = config;
  settled.solutions = SolutionStyle::kSettled;
  GraphStream stream(config), settled_stream(settled);
  for (int i = 0; i < 6000; ++i) {
    Task task = (i % 3 ? stream : settled_stream).next();
    for (auto it = missing.begin(); it != missing.end();) {
      it = (task.name + "_").find(*it + "_") != std::string::npos ? missing.erase(it) : std::next(it);
    }
    if (i % 20) continue;
    EXPECT_EQ(first_syntax_error(task.source), 0) << task.source;
    EXPECT_EQ(first_syntax_error(task.solution), 0) << task.solution;
    EXPECT_NO_THROW(task_from_json(to_json(task), task.id));
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(Graphs, SameSeedSameTasksAndNoGraphTwice) {
  auto a = make({}, 400), b = make({}, 400);
  SynthConfig other;
  other.seed = 8;
  auto c = make(other, 400);
  std::set<std::string> hashes, ids;
  int same = 0, level1 = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(to_json(a[i]), to_json(b[i]));
    same += a[i].source == c[i].source;
    level1 += a[i].level == 1;
    EXPECT_TRUE(hashes.insert(a[i].graph_hash).second) << a[i].name;
    EXPECT_TRUE(ids.insert(a[i].id).second);
    EXPECT_EQ(a[i].level == 1, a[i].difficulty == 1);
  }
  EXPECT_LT(same, 8);
  EXPECT_NEAR(level1, 100, 45);
}

TEST(Graphs, StreamGoesOnWhereAnotherStopped) {
  auto tasks = make({}, 60);
  GraphStream resumed({});
  for (size_t i = 0; i < 37; ++i) resumed.skip(tasks[i].graph_hash, tasks[i].level);
  for (size_t i = 37; i < 60; ++i) EXPECT_EQ(to_json(resumed.next()), to_json(tasks[i]));
}

// A few operators, of which single ones run out at once: places of level 1 get larger graphs, then are looked for no
// more.
SynthConfig few_operators() {
  SynthConfig config;
  config.operators = {"relu", "neg", "exp"};
  config.dtypes = {"float32"};
  config.level1_share = 1;
  config.max_nodes = 8;
  return config;
}

TEST(Graphs, TasksDoNotDependOnHowManyAreMadeTogether) {
  const auto together = GraphStream(few_operators()).next(600);
  GraphStream one_by_one(few_operators()), after_400(few_operators());
  for (size_t i = 0; i < 400; ++i) after_400.skip(together[i].graph_hash, together[i].level);
  for (size_t i = 0; i < together.size(); ++i) {
    ASSERT_EQ(to_json(one_by_one.next()), to_json(together[i])) << i;
    if (i >= 400) {
      ASSERT_EQ(to_json(after_400.next()), to_json(together[i])) << i;
    }
  }
  EXPECT_EQ(together.front().level, 1);
  for (size_t i = 580; i < 600; ++i) EXPECT_EQ(together[i].level, 2) << "single operators have run out";
}

TEST(Graphs, RepeatsComeWithAnotherText) {
  SynthConfig config = few_operators();
  config.repeats = 3;
  std::map<std::string, std::set<std::string>> sources;
  std::map<std::string, int> times;
  for (const Task& task : GraphStream(config).next(300)) {
    ++times[task.graph_hash];
    sources[task.graph_hash].insert(task.source);
  }
  int thrice = 0, different = 0;
  for (const auto& [hash, count] : times) {
    EXPECT_LE(count, 3);
    thrice += count == 3;
    different += count == 3 && sources[hash].size() == 3;
  }
  EXPECT_GT(thrice, 10);
  EXPECT_GT(different, thrice * 8 / 10);
}

TEST(Graphs, ConfigIsChecked) {
  SynthConfig config;
  config.dtypes = {"float8"};
  EXPECT_THROW(GraphStream{config}, Error);
  config = {};
  config.level1_share = 1.5;
  EXPECT_THROW(GraphStream{config}, Error);
  config = {};
  config.max_nodes = 1;
  EXPECT_THROW(GraphStream{config}, Error);
  config = {};
  config.repeats = 0;
  EXPECT_THROW(GraphStream{config}, Error);
}

TEST(Graphs, DtypesAndSizesAreThoseAskedFor) {
  SynthConfig config;
  config.dtypes = {"float32"};
  config.only_covered = true;
  for (const Task& task : make(config, 60)) {
    EXPECT_EQ(task.source.find("float16", task.source.find("def get_inputs")), std::string::npos) << task.source;
    EXPECT_FALSE(task.solution.empty());
    EXPECT_LE(facts_of(task).elements, 200000) << task.source;
  }
  config.sizes = SizeRange::kGpu;
  config.only_covered = false;
  int64_t large = 0;
  for (const Task& task : make(config, 60)) large += facts_of(task).elements >= 1000000;
  EXPECT_GT(large, 20);
}

TEST(Graphs, NamedFusionsAreThere) {
  std::map<std::string, int> drawn;
  for (uint64_t i = 0; i < 1500; ++i) {
    DrawConfig config;
    config.nodes = 2;
    config.fusion = true;
    config.long_rows = i % 2;
    if (auto graph = draw_graph(config, Rng(5).at(i))) {
      ++drawn[graph->title];
      EXPECT_TRUE(plan_kernels(*graph)) << graph->title;
    }
  }
  for (const std::string& name : fusion_names()) EXPECT_GT(drawn[name], 0) << name;
}

TEST(Graphs, OneNodeFusesIntoOneKernel) {
  for (uint64_t i = 0; i < 300; ++i) {
    DrawConfig config;
    config.nodes = 3;
    config.fusion = true;
    auto graph = draw_graph(config, Rng(6).at(i));
    if (!graph || (graph->title != "conv_bn_relu" && graph->title != "residual_layer_norm")) continue;
    if (graph->outputs.size() > 1) continue;
    auto plan = plan_kernels(*graph);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->kernels.size(), 1u) << graph->title;
  }
}

TEST(Graphs, HashSeesWhatMattersOnly) {
  DrawConfig config;
  config.nodes = 3;
  for (uint64_t i = 0; i < 60; ++i) {
    auto graph = draw_graph(config, Rng(9).at(i));
    if (!graph) continue;
    TensorGraph other = *graph;
    for (auto& [name, dim] : other.symbols) dim.full += 1;
    EXPECT_EQ(other.hash(), graph->hash()) << "sizes are not part of it";
    for (Node& node : other.nodes) node.type = Type::kBfloat16;
    EXPECT_NE(other.hash(), graph->hash()) << "dtypes are";
  }
}

TEST(Graphs, ValuesAreNeitherConstantNorLarge) {
  for (uint64_t i = 0; i < 200; ++i) {
    DrawConfig config;
    config.nodes = 4;
    auto graph = draw_graph(config, Rng(10).at(i));
    if (!graph) continue;
    for (const Node& node : graph->nodes) {
      if (node.type == Type::kInt64) continue;
      std::set<double> different(node.values.samples.begin(), node.values.samples.end());
      EXPECT_GE(different.size(), 2u) << graph->name();
      for (double v : node.values.samples) EXPECT_TRUE(std::isfinite(v) && std::abs(v) < 1e7) << graph->name();
    }
  }
}

// What was made with a version is made by the next: results and corpora belong to a stream.
TEST(Graphs, BareStreamStaysAsItWas) {
  SynthConfig config;
  config.writing = WritingStyle::kBare;
  std::string all;
  for (const Task& task : make(config, 600)) all += json_line(to_json(task)) + "\n";
  EXPECT_EQ(content_hash(all), "c6e410e260643d95b941c8164eed7301");
}

TEST(Graphs, PlainStreamStaysAsItWas) {
  SynthConfig config;
  config.style = SynthStyle::kPlain;
  std::string all;
  for (const Task& task : make(config, 600)) all += json_line(to_json(task)) + "\n";
  EXPECT_EQ(content_hash(all), "f3534a3d23b296576ac994c59193873d");
}

TEST(Coverage, ComparesWhatALibraryMustHave) {
  Task task;
  task.id = "a";
  task.source = R"PY(
import math
import torch.nn as nn
class Block(nn.Module):
    def __init__(self, width):
        super(Block, self).__init__()
        self.conv = nn.ConvTranspose3d(width // 3 % 7, width, 3)
        self.cell = nn.GRUCell(width, width)
    def forward(self, x):
        return self.conv(x) / math.sqrt(x.size(1))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(8), nn.Dropout(0.5))
    def forward(self, x):
        return torch.mul(self.blocks(x), torch.min(x, dim=1)[0]) @ x
def get_inputs():
    return [torch.bernoulli(3)]
)PY";
  EXPECT_THAT(library_operators(task.source), testing::UnorderedElementsAre("ConvTranspose3d", "GRUCell", "Sequential",
                                                                            "Dropout", "/", "size", "mul", "min", "@"));
  Task simple = task;
  simple.id = "b";
  simple.source = replace_all(task.source, "nn.GRUCell(width, width)", "nn.AdaptiveAvgPool2d(1)");
  auto coverage = operator_coverage({task, simple});
  EXPECT_EQ(coverage.levels.at(1).tasks, 2);
  EXPECT_EQ(coverage.levels.at(1).covered, 1);
  EXPECT_THAT(coverage.missing, testing::ElementsAre(testing::Pair("grucell", testing::ElementsAre("a"))));
}

SynthConfig plain(const std::vector<std::string>& words) {
  SynthConfig config;
  config.style = SynthStyle::kPlain;
  config.operators = words;
  config.dtypes = {"float32"};
  config.max_nodes = 4;
  return config;
}

std::vector<Task> make_level(const SynthConfig& config, int level, int64_t most) {
  return GraphStream(config).next_of_level(level, most);
}

size_t count(const std::string& text, const std::string& part) {
  return (text.size() - replace_all(text, part, "").size()) / part.size();
}

TEST(Operators, AreChosenByWord) {
  auto names = [](const std::vector<std::string>& words) {
    std::vector<std::string> out;
    for (const Operator* op : select_operators(words)) out.push_back(op->name);
    return out;
  };
  EXPECT_EQ(names({"all"}).size(), operators().size());
  EXPECT_EQ(names({"core"}).size(), 29u);
  EXPECT_THAT(names({"softmax"}), testing::ElementsAre("softmax", "softmin", "log_softmax"));
  EXPECT_THAT(names({"linear", "relu", "core"}), testing::AllOf(testing::Contains("linear"), testing::SizeIs(30)));
  try {
    names({"elementwize"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.hint(), testing::HasSubstr("'elementwise'"));
  }
  SynthConfig config;
  config.operators = {"elementwise", "softmax"};
  std::set<std::string> wanted = {"relu", "softmax"};
  for (const Task& task : make(config, 150)) {
    EXPECT_EQ(task.source.find("nn.Linear"), std::string::npos) << "a named fusion brought it";
    std::erase_if(wanted, [&](const std::string& op) { return task.name.find(op) != std::string::npos; });
  }
  EXPECT_THAT(wanted, testing::IsEmpty());
  config.style = SynthStyle::kPlain;
  config.operators = {"conv", "movement"};
  EXPECT_THROW(config.validate(), Error);
}

TEST(Plain, OneKernelOneStyleAndShort) {
  std::set<std::string> hashes, families = {"relu", "add", "sum", "softmax", "layer_norm", "linear", "matmul"};
  for (const Task& task : make(plain({"all"}), 400)) {
    EXPECT_EQ(first_syntax_error(task.source), 0) << task.source;
    EXPECT_EQ(first_syntax_error(task.solution), 0) << task.solution;
    EXPECT_NO_THROW(task_from_json(to_json(task), task.id));
    EXPECT_TRUE(hashes.insert(task.graph_hash).second) << task.name;
    EXPECT_EQ(count(task.solution, "def kernel("), 1u) << task.solution;
    EXPECT_EQ(count(task.solution, "kernel[("), 1u) << task.solution;
    EXPECT_EQ(task.solution.find("#"), std::string::npos);
    EXPECT_LE(task.difficulty, 4);
    EXPECT_LT(task.solution.size(), 2200u) << task.solution;
    EXPECT_LE(facts_of(task).elements, 100000) << task.source;
    std::erase_if(families, [&](const std::string& op) { return task.name.find(op) != std::string::npos; });
  }
  EXPECT_THAT(families, testing::IsEmpty());
}

// A policy of 135M parameters learns this in minutes: every line of the source has its one line in the kernel.
TEST(Plain, AStepOfTheSourceIsALineOfTheKernel) {
  for (const Task& task : make_level(plain({"core"}), 2, 100)) {
    std::string body = task.source.substr(task.source.find("def forward"));
    body = body.substr(0, body.find("return"));
    std::string kernel = task.solution.substr(0, task.solution.find("class ModelNew"));
    EXPECT_EQ(count(body, "        x = "), static_cast<size_t>(task.difficulty)) << task.source;
    EXPECT_EQ(count(kernel, "    x = "), static_cast<size_t>(task.difficulty) + 1) << task.solution;
    EXPECT_EQ(count(body, "r = x"), count(kernel, "r = x"));
    EXPECT_LT(task.solution.size(), 1000u) << task.solution;
  }
}

TEST(Plain, SingleOperatorsRunOutAndFusionsDoNot) {
  auto core = make_level(plain({"core"}), 1, 1000), many = make_level(plain({"elementwise"}), 1, 1000);
  EXPECT_GE(core.size(), 64u);
  EXPECT_LE(core.size(), 80u);
  EXPECT_GE(many.size(), 150u);
  std::set<std::string> solutions;
  for (const Task& task : core) {
    solutions.insert(task.solution);
    EXPECT_EQ(task.level, 1);
    EXPECT_EQ(task.difficulty, 1);
  }
  EXPECT_GE(solutions.size() + 2, core.size()) << "another graph is another computation, but for clamp and hardtanh";
  auto chains = make_level(plain({"core"}), 2, 2000);
  EXPECT_EQ(chains.size(), 2000u);
}

TEST(Plain, LevelsDoNotDependOnEachOther) {
  GraphStream both(plain({"core"}));
  auto ones = make_level(plain({"core"}), 1, 10), twos = make_level(plain({"core"}), 2, 10);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(to_json(both.next_of_level(2, 1)[0]), to_json(twos[i]));
    EXPECT_EQ(to_json(both.next_of_level(1, 1)[0]), to_json(ones[i]));
  }
}

}  // namespace
}  // namespace tritonrl::graphs::graphs_test
