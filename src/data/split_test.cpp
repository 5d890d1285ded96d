// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

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

TEST(SplitTest, DefaultsFillEverySplitWithoutOverlap) {
  DataConfig config;
  auto splits = make_splits(synthesise(config.synth, config.synth_level1, config.synth_level2), config.split);
  EXPECT_NO_THROW(check_disjoint(splits));
  EXPECT_EQ(splits.train.size(), 160u);
  EXPECT_EQ(splits.rl.size(), 40u);
  EXPECT_EQ(splits.heldout.size(), 48u);
  EXPECT_EQ(std::count_if(splits.heldout.begin(), splits.heldout.end(), [](const Task& t) { return t.level == 1; }),
            24);
  std::set<std::string> graphs;
  for (const Task& task : splits.heldout)
    EXPECT_TRUE(graphs.insert(task.graph_hash).second) << "one task a held-out graph";
}

TEST(SplitTest, HeldOutOperatorsWereTaught) {
  SplitConfig config;
  config.train_level1 = 10;  // Few enough that some operators are missing.
  config.train_level2 = 20;
  config.heldout_level1 = config.heldout_level2 = 5;
  auto splits = make_splits(synthesise({}, 200, 400), config);
  EXPECT_FALSE(splits.unteachable.empty());
  std::set<std::string> taught;
  for (const Task& task : splits.train) taught.merge(operators_of_source(task.source));
  for (const Task& task : splits.heldout) {
    for (const std::string& op : operators_of_source(task.source)) EXPECT_EQ(taught.count(op), 1u) << op;
  }
}

TEST(SplitTest, MoreTasksMoveNothingBetweenSplits) {
  SplitConfig config;
  config.train_level1 = config.train_level2 = 30;
  config.rl_level1 = config.rl_level2 = config.heldout_level1 = config.heldout_level2 = 10;
  auto small = make_splits(synthesise({}, 133, 200), config), large = make_splits(synthesise({}, 133, 600), config);
  Splits mixed{small.train, large.rl, {}, {}};
  EXPECT_NO_THROW(check_disjoint(mixed));
  mixed = {large.train, {}, small.heldout, {}};
  EXPECT_NO_THROW(check_disjoint(mixed));
  mixed = {{}, small.rl, large.heldout, {}};
  EXPECT_NO_THROW(check_disjoint(mixed));
}

TEST(SplitTest, OrderOfTasksAndSeed) {
  auto tasks = synthesise({}, 133, 300);
  SplitConfig config;
  config.train_level1 = config.rl_level1 = config.heldout_level1 = 15;
  auto a = make_splits(tasks, config);
  std::reverse(tasks.begin(), tasks.end());
  auto b = make_splits(tasks, config);
  EXPECT_EQ(ids(a.train), ids(b.train));
  EXPECT_EQ(ids(a.heldout), ids(b.heldout));
  config.seed = 12;
  EXPECT_NE(ids(make_splits(tasks, config).heldout), ids(a.heldout));
}

TEST(SplitTest, OverlapIsFoundByGraphNotByText) {
  Task a, b;
  a.id = "a";
  b.id = "b";
  a.graph_hash = b.graph_hash = "graph:1";
  a.source = "one";
  b.source = "two";
  try {
    check_disjoint({{a}, {}, {b}, {}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("'a' (train)"), testing::HasSubstr("'b' (heldout)")));
  }
  EXPECT_NO_THROW(check_disjoint({{a, b}, {}, {}, {}})) << "the same graph twice in one split is fine";
  a.graph_hash = b.graph_hash = "";
  EXPECT_NO_THROW(check_disjoint({{a}, {b}, {}, {}}));
  b.source = a.source;
  EXPECT_THROW(check_disjoint({{a}, {b}, {}, {}}), Error) << "tasks without a graph are compared by source";
}

TEST(SplitTest, CountsThatCannotBeHad) {
  SplitConfig config;
  config.heldout_level2 = 1000;
  EXPECT_THROW(make_splits(synthesise({}, 133, 200), config), Error);
  config.rl_share = 0.9;
  EXPECT_THROW(config.validate(), Error);
}

TEST(DataConfigTest, PrintsAndLoads) {
  DataConfig config;
  config.synth.families.gemm = 0;
  config.sampler.level2_share = 0.25;
  ConfigNode root = [&] {
    auto path = std::filesystem::temp_directory_path() / "data_config_test.yaml";
    write_file(path, to_yaml(config));
    auto node = parse_yaml_file(path.string());
    std::filesystem::remove(path);
    return node;
  }();
  DataConfig loaded;
  ConfigReader::read(loaded, root, "data");
  EXPECT_EQ(to_yaml(loaded), to_yaml(config));
  EXPECT_THROW(load_config<DataConfig>({}, {"synth.operators=most"}), Error);
  EXPECT_THROW(load_config<DataConfig>({}, {"synth.max_steps=1"}), Error);
  EXPECT_THROW(load_config<DataConfig>({}, {"sampler.level2_share=1.5"}), Error);
}

}  // namespace
}  // namespace tritonrl::split_test
