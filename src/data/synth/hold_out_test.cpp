// SPDX-License-Identifier: Apache-2.0
// What the stream must never draw: operators held out, graphs of a benchmark.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/error.h"
#include "data/synth/graph_synth.h"
#include "data/tasks/task_facts.h"

namespace tritonrl::graphs::hold_out_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Names = std::set<std::string>;

// A chain of operators over one input.
TensorGraph chain(const std::vector<std::string>& names) {
  TensorGraph graph;
  Node input;
  input.kind = Node::Kind::kInput;
  int x = graph.add(input);
  for (const std::string& name : names) {
    Node node;
    node.op = find_operator(name);
    node.operands = {x};
    x = graph.add(std::move(node));
  }
  graph.outputs = {x};
  return graph;
}

TEST(OutlineOperators, AreThoseThatTheOutputsNeedByTheOutlinesNames) {
  EXPECT_EQ(outline_operators(chain({"relu", "permute", "hardtanh", "relu"})), (Names{"relu", "clamp"}));
  EXPECT_EQ(outline_operators(*find_operator("gate")), (Names{"mul", "sigmoid"}));
  EXPECT_EQ(outline_operators(*find_operator("depthwise_conv2d")), (Names{"conv2d"}));
  EXPECT_THAT(outline_operators(*find_operator("permute")), IsEmpty());
  TensorGraph swish = chain({"sigmoid"});
  Node product;
  product.op = find_operator("mul");
  product.operands = {0, 1};
  swish.outputs = {swish.add(product)};
  EXPECT_EQ(outline_operators(swish), (Names{"silu"})) << "the sigmoid is a part of it";
  swish.outputs.push_back(1);
  EXPECT_EQ(outline_operators(swish), (Names{"silu", "sigmoid"})) << "unless it is an output too";
  std::vector<Operator> recorded = recorded_operators();
  for (const auto* table : {&operators(), &std::as_const(recorded)}) {
    for (const Operator& op : *table) EXPECT_NO_THROW(outline_operators(op)) << op.name;
  }
}

SynthConfig varied() {
  SynthConfig config;
  config.layer_share = 0.4;
  config.fusion_share = 0.5;
  return config;
}

Names operators_in(const std::vector<Task>& tasks) {
  Names all;
  for (const Task& task : tasks) all.merge(facts_of(task).operators);
  return all;
}

TEST(LeaveOut, NoTaskHasTheOperatorsAloneOrInAGraph) {
  SynthConfig config = varied();
  Names before = operators_in(GraphStream(config).next(1500));
  EXPECT_THAT(before, AllOf(Contains("gelu"), Contains("softmax"), Contains("layernorm"), Contains("silu")));
  config.leave_out = {"gelu", "gelu_tanh", "softmax", "layer_norm", "silu"};  // "softmax" is a family.
  auto tasks = GraphStream(config).next(1500);
  Names after = operators_in(tasks);
  for (const char* gone : {"gelu", "softmax", "logsoftmax", "softmin", "layernorm", "silu"}) {
    EXPECT_THAT(after, Not(Contains(gone)));
  }
  EXPECT_THAT(after, AllOf(Contains("conv2d"), Contains("linear"), Contains("relu"), Contains("sigmoid")));
  for (const Task& task : tasks) {
    EXPECT_EQ(task.name.find("swiglu"), std::string::npos) << "a named fusion with a silu";
    const std::string code = std::regex_replace(task.source, std::regex("\"\"\"[^\"]*\"\"\""), "");
    // A call of it: "softmax_scale" is what attention's number is called.
    EXPECT_FALSE(std::regex_search(code, std::regex("[Ss]oft(max|min)[12]?d?\\("))) << task.source;
  }
}

TEST(LeaveOut, SaysWhatMayStillBeDrawn) {
  SynthConfig config = varied();
  Names all = drawable_operators(config);
  EXPECT_THAT(all, AllOf(Contains("sigmoid"), Contains("clamp"), Contains("cumsum"), Not(Contains("permute"))));
  config.leave_out = {"sigmoid", "scan"};
  Names some = drawable_operators(config);
  EXPECT_THAT(some, AllOf(Not(Contains("sigmoid")), Not(Contains("cumsum")), Contains("mul"), Contains("silu")));
  config.operators = {"softmax", "gate"};
  EXPECT_EQ(drawable_operators(config), (Names{"softmax", "log_softmax", "neg"})) << "gate has a sigmoid in it";
}

TEST(LeaveOut, RefusesWhatItDoesNotKnowAndTwins) {
  auto message = [](std::vector<std::string> words) -> std::string {
    SynthConfig config;
    config.leave_out = std::move(words);
    try {
      config.validate();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({"softplus", "softplus_beta", "conv"}), "");
  EXPECT_THAT(message({"sofmax"}), AllOf(HasSubstr("leave_out does not know 'sofmax'"), HasSubstr("'softmax'")));
  EXPECT_THAT(message({"gelu"}), AllOf(HasSubstr("compute the same: gelu_tanh"), HasSubstr("leave these out too")));
  EXPECT_THAT(message({"conv_transpose2d"}), "");
  EXPECT_THAT(message({"all"}), HasSubstr("has none"));
}

// A benchmark of one graph.
TEST(Exclusions, TheStreamDropsTheirGraphsAndCountsThem) {
  SynthConfig config;
  config.operators = {"relu", "neg", "exp"};
  config.dtypes = {"float32"};
  config.repeats = 40;
  auto named = [](const std::vector<Task>& tasks, const std::string& name) {
    return std::count_if(tasks.begin(), tasks.end(), [&](const Task& task) {
      size_t at = task.source.find("        return ");  // With two outputs it is another graph.
      return task.name == name &&
             task.source.substr(at, task.source.find('\n', at) - at).find(',') == std::string::npos;
    });
  };
  GraphStream open(config);
  auto before = open.next(400);
  EXPECT_GT(named(before, "neg_relu"), 0);
  EXPECT_EQ(open.excluded_draws(), 0);
  Exclusion exclusion;
  exclusion.file = "benchmark.jsonl";
  exclusion.outlines = {{outline(chain({"neg", "relu"})), "b/1"}, {outline(chain({"relu"})), "b/2"}};
  GraphStream closed(config, exclusion);
  auto after = closed.next(400);
  EXPECT_EQ(named(after, "neg_relu"), 0);
  EXPECT_GT(named(after, "relu"), 0) << "a single operator may be taught";
  EXPECT_GT(named(after, "relu_neg"), 0);
  EXPECT_GT(closed.excluded_draws(), 0);
  GraphStream again(config, exclusion);
  again.next(400);
  EXPECT_EQ(again.excluded_draws(), closed.excluded_draws()) << "whatever the threads do";
  SplitConfig few;
  few.train_level1 = few.rl_level1 = few.heldout_level1 = few.rl_level2 = few.heldout_level2 = 0;
  few.train_level2 = 100;
  Splits splits = synthesise(config, few, exclusion);
  EXPECT_EQ(named(splits.train, "neg_relu"), 0);
  EXPECT_GT(splits.excluded_draws, 0);
}

}  // namespace
}  // namespace tritonrl::graphs::hold_out_test
