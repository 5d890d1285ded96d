// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/exclusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/secure_hash.h"

namespace tritonrl::exclusion_test {
namespace {

Task task(const std::string& id, int level, int recorded_level, const std::string& outline) {
  Task t;
  t.id = id;
  t.level = level;
  t.source = "class Model:\n    pass  # " + id + "\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n";
  if (recorded_level > 0)
    t.recorded = {recorded_level, recorded_level, "trace:" + id, "trace:l" + id, outline, {"add"}};
  return t;
}

class ExclusionTest : public testing::Test {
 protected:
  Exclusion loaded(const std::vector<Task>& tasks) {
    file_ = std::filesystem::path(testing::TempDir()) / "tritonrl_exclusion_test.jsonl";
    save_tasks(file_, tasks);
    return load_exclusion(file_);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::filesystem::path file_;
};

TEST_F(ExclusionTest, HoldsTheOutlinesOfFusionsAndOfSingleTasksThatAreNone) {
  std::vector<Task> benchmark = {task("b/relu", 1, 1, "outline:relu"), task("b/formula", 1, 2, "outline:formula"),
                                 task("b/fusion", 2, 2, "outline:fusion"), task("b/odd", 2, 0, "")};
  Exclusion exclusion = loaded(benchmark);
  EXPECT_EQ(exclusion.tasks, 4);
  EXPECT_EQ(exclusion.unknown, 1);
  EXPECT_EQ(exclusion.outlines,
            (std::map<std::string, std::string>{{"outline:formula", "b/formula"}, {"outline:fusion", "b/fusion"}}));
  EXPECT_EQ(exclusion.hash, secure_hash(read_file(file_)));
  EXPECT_EQ(exclusion.sources.size(), 4u);
  EXPECT_TRUE(exclusion.sources.contains(secure_hash(benchmark[0].source)));
  std::vector<Task> train = {task("t/1", 1, 1, "outline:fusion"), task("t/2", 2, 2, "outline:fusion"),
                             task("t/3", 2, 2, "outline:formula"), task("t/4", 2, 2, "outline:other"),
                             task("t/5", 2, 0, "")};
  EXPECT_THAT(exclusion.pairs(train), testing::ElementsAre("t/2 ~ b/fusion", "t/3 ~ b/formula"));
  EXPECT_TRUE(Exclusion().pairs(train).empty());
  EXPECT_TRUE(load_exclusion("").empty());
}

TEST_F(ExclusionTest, RefusesAFileThatNobodyRecorded) {
  EXPECT_THROW(loaded({task("b/fusion", 2, 0, "")}), Error);
  EXPECT_NO_THROW(loaded({task("b/single", 1, 0, "")})) << "nothing is to be compared";
  Task old = task("b/fusion", 2, 2, "outline:fusion");
  old.recorded.operators.clear();
  EXPECT_THROW(loaded({old}), Error) << "outlines of earlier versions are others";
  EXPECT_THROW(load_exclusion("no_such_file.jsonl"), Error);
}

}  // namespace
}  // namespace tritonrl::exclusion_test
