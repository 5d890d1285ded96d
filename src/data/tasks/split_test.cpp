// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/data_config.h"
#include "data/python_source.h"

namespace tritonrl::split_test {
namespace {

std::vector<std::string> ids(const std::vector<Task>& tasks) {
  std::vector<std::string> out;
  for (const Task& task : tasks) out.push_back(task.id);
  return out;
}

graphs::SynthConfig plain() {
  graphs::SynthConfig config;
  config.style = graphs::SynthStyle::kPlain;
  config.dtypes = {"float32"};
  return config;
}

SplitConfig of_size(int64_t train, int64_t others) {
  SplitConfig config;
  config.train_level1 = config.train_level2 = train;
  config.rl_level1 = config.rl_level2 = config.heldout_level1 = config.heldout_level2 = others;
  return config;
}

TEST(SplitTest, DefaultsFillEverySplitWithoutOverlap) {
  DataConfig config;
  for (const graphs::SynthConfig& synth : {config.synth, plain()}) {
    auto splits = graphs::synthesise(synth, config.split);
    EXPECT_NO_THROW(check_disjoint(splits));
    EXPECT_EQ(splits.train.size(), 160u);
    EXPECT_EQ(splits.rl.size(), 40u);
    EXPECT_EQ(splits.heldout.size(), 48u);
    std::set<std::string> graphs, ids;
    for (const auto* tasks : {&splits.train, &splits.rl, &splits.heldout}) {
      auto level1 = std::count_if(tasks->begin(), tasks->end(), [](const Task& t) { return t.level == 1; });
      EXPECT_EQ(level1 * 2, std::ssize(*tasks));
      for (const Task& task : *tasks) {
        EXPECT_TRUE(graphs.insert(task.graph_hash).second) << task.name;
        EXPECT_TRUE(ids.insert(task.id).second) << task.id;
      }
    }
    for (const Task& task : splits.train) EXPECT_FALSE(task.solution.empty()) << task.id;
  }
}

TEST(SplitTest, HeldOutOperatorsWereTaught) {
  auto splits = graphs::synthesise(plain(), of_size(10, 5));  // Few enough that some operators are missing.
  std::set<std::string> taught;
  for (const Task& task : splits.train) taught.merge(operators_of_source(task.source));
  for (const Task& task : splits.heldout) {
    for (const std::string& op : operators_of_source(task.source)) EXPECT_EQ(taught.count(op), 1u) << op;
  }
}

TEST(SplitTest, MoreTasksMoveNothingBetweenSplits) {
  auto small = graphs::synthesise(plain(), of_size(30, 10)), large = graphs::synthesise(plain(), of_size(60, 20));
  EXPECT_NO_THROW(check_disjoint({small.train, large.rl, {}}));
  EXPECT_NO_THROW(check_disjoint({large.train, {}, small.heldout}));
  EXPECT_NO_THROW(check_disjoint({{}, small.rl, large.heldout}));
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(to_json(small.train[i]), to_json(large.train[i])) << "in the same order";
}

TEST(SplitTest, SeedsDecideWhatIsHeldOut) {
  auto config = of_size(15, 15);
  auto a = graphs::synthesise(plain(), config), b = graphs::synthesise(plain(), config);
  EXPECT_EQ(ids(a.train), ids(b.train));
  EXPECT_EQ(ids(a.heldout), ids(b.heldout));
  config.seed = 12;
  EXPECT_NE(ids(graphs::synthesise(plain(), config).heldout), ids(a.heldout));
}

TEST(SplitTest, OverlapIsFoundByGraphNotByText) {
  Task a, b;
  a.id = "a";
  b.id = "b";
  a.graph_hash = b.graph_hash = "graph:1";
  a.source = "one";
  b.source = "two";
  try {
    check_disjoint({{a}, {}, {b}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("'a' (train)"), testing::HasSubstr("'b' (heldout)")));
  }
  EXPECT_NO_THROW(check_disjoint({{a, b}, {}, {}})) << "the same graph twice in one split is fine";
  a.graph_hash = b.graph_hash = "";
  EXPECT_NO_THROW(check_disjoint({{a}, {b}, {}}));
  b.source = a.source;
  EXPECT_THROW(check_disjoint({{a}, {b}, {}}), Error) << "tasks without a graph are compared by source";
}

TEST(SplitTest, CountsThatCannotBeHad) {
  graphs::SynthConfig few = plain();
  few.operators = {"softmax"};
  EXPECT_THROW(graphs::synthesise(few, of_size(30, 1)), Error) << "there are six";
  EXPECT_THROW(make_splits([](int, int64_t) { return std::vector<Task>(); }, of_size(1, 0)), Error);
  Task unsolved;
  unsolved.source = "x";
  EXPECT_THROW(make_splits([&](int, int64_t) { return std::vector{unsolved}; }, of_size(1, 0)), Error)
      << "none has a solution";
  EXPECT_NO_THROW(make_splits([](int, int64_t) { return std::vector<Task>(); }, of_size(0, 0)));
  SplitConfig config;
  config.rl_share = 0.9;
  EXPECT_THROW(config.validate(), Error);
}

TEST(DataConfigTest, PrintsAndLoads) {
  auto config = load_config<DataConfig>(
      {}, {"synth.style=plain", "synth.operators=[core, softmax]", "sampler.fixed_mix.level2_share=0.25"});
  std::string file = testing::TempDir() + "/data_config_test.yaml";
  write_file(file, to_yaml(config));
  EXPECT_EQ(to_yaml(load_config<DataConfig>({file}, {})), to_yaml(config));
  EXPECT_THROW(load_config<DataConfig>({}, {"synth.operators=[most]"}), Error);
  EXPECT_THROW(load_config<DataConfig>({}, {"synth.max_nodes=1"}), Error);
  EXPECT_THROW(load_config<DataConfig>({}, {"sampler.fixed_mix.level2_share=1.5"}), Error);
}

}  // namespace
}  // namespace tritonrl::split_test
