// SPDX-License-Identifier: Apache-2.0
#include "eval/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "eval/peer.h"
#include "support/made_up_run.h"

namespace tritonrl::tables_test {
namespace {

using namespace made_up;  // NOLINT(google-build-using-namespace)

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& table) { return split(table, '\n'); }

TEST(Tables, ALineALevel) {
  std::vector<EvalRecord> records;
  add_task(records, "a", 1, 4, 3);
  add_task(records, "b", 2, 2, 0);
  records.push_back(record("b", 2, Outcome::kHarnessFault, Stage::kExtract, 2));
  std::vector<std::string> lines = lines_of(to_table(make_row("sft", records)));
  ASSERT_GE(lines.size(), 5u);
  EXPECT_THAT(lines[0], StartsWith("sft"));
  EXPECT_THAT(lines[0], HasSubstr("pass@3"));
  EXPECT_THAT(lines[1], StartsWith("level 1"));
  EXPECT_THAT(lines[1], HasSubstr("75.0 % (30-95)"));     // Wilson's interval of 3 of 4.
  EXPECT_THAT(lines[1], HasSubstr("100.0 % (100-100)"));  // pass@3 of one task.
  EXPECT_THAT(lines[2], HasSubstr("0.0 % (0-66)"));
  EXPECT_THAT(lines[3], StartsWith("all "));
  EXPECT_THAT(lines[3], EndsWith("not measured"));
  EXPECT_THAT(lines[4], StartsWith("1 more answers have no verdict"));
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(lines[i].size(), lines[1].size());
}

TEST(Tables, Turns) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("a", 1, 1), fail("a", 1, 2)};
  records.push_back(pass("a", 1, 1));
  records.back().turn = 2;
  std::string table = to_table(make_row("rl", records));
  EXPECT_THAT(table, HasSubstr("within 2 turns"));
  EXPECT_THAT(table, HasSubstr("66.7 %"));
}

TEST(Tables, Funnel) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("a", 1, 1), record("b", 2, Outcome::kNoCode, Stage::kExtract),
                                     record("b", 2, Outcome::kCompileError, Stage::kCompile, 1)};
  std::vector<std::string> lines = lines_of(funnel_table(make_row("rl", records)));
  EXPECT_EQ(lines[0], "got through      extract       syntax      compile    tiny_run    full_run");
  EXPECT_EQ(lines[1], "level 1      2 (100.0 %)  2 (100.0 %)  2 (100.0 %)  1 (50.0 %)  1 (50.0 %)");
  EXPECT_EQ(lines[2], "level 2       1 (50.0 %)   1 (50.0 %)    0 (0.0 %)   0 (0.0 %)   0 (0.0 %)");
  EXPECT_EQ(lines[3], "all           3 (75.0 %)   3 (75.0 %)   2 (50.0 %)  1 (25.0 %)  1 (25.0 %)");
  records[0].verdict.speedup = 2;
  EXPECT_THAT(lines_of(funnel_table(make_row("rl", records)))[0], EndsWith("time"));
}

TEST(Tables, FastP) {
  std::vector<EvalRecord> records = {pass("a", 1), pass("a", 1, 1), pass("b", 2)};
  EXPECT_EQ(fast_table(make_row("rl", records)), "");
  records[0].verdict.speedup = 1.5;
  records[1].verdict.speedup = 0.5;
  std::vector<std::string> lines = lines_of(fast_table(make_row("rl", records)));
  EXPECT_THAT(lines[0], HasSubstr("fast_0.8"));
  EXPECT_THAT(lines[0], EndsWith("fast_2.0"));
  EXPECT_THAT(lines[1], HasSubstr("50.0 % (9-91)"));  // Wilson's interval of 1 of 2.
  EXPECT_THAT(lines[1], EndsWith("0.0 % (0-66)"));
  EXPECT_THAT(lines[2], EndsWith("not measured"));
}

TEST(Tables, Peer) {
  std::vector<EvalRecord> records = {pass("a", 1), pass("a", 1, 1), pass("b", 2), fail("z", 2)};
  ResultsRow row = make_row("rl", records);
  EXPECT_EQ(peer_table(row), "");
  records[0].verdict.speedup = 3;
  records[1].verdict.speedup = 1.5;
  row = make_row("rl", records);
  compare_with_peer({"torch.compile", {{"a", {2, 2, 2, ""}}, {"b", {1, 1, 1, ""}}}}, records, &row);
  std::vector<std::string> lines = lines_of(peer_table(row));
  EXPECT_THAT(lines[0], StartsWith("beside torch.compile"));
  EXPECT_THAT(lines[1], HasSubstr("1         2.00x       50.0 % (9-91)"));
  EXPECT_THAT(lines[1], EndsWith("1.06x"));
  EXPECT_THAT(lines[2], EndsWith("not measured"));
  EXPECT_EQ(lines[4], "");
  records[2].verdict.speedup = 2;
  compare_with_peer({"torch.compile", {{"a", {2, 2, 2, ""}}, {"b", {1, 1, 1, ""}}}}, records, &row);
  EXPECT_THAT(peer_table(row), EndsWith("torch.compile has no time for 1 more tasks\n"));
  EXPECT_THAT(all_tables(row), HasSubstr("\n\nbeside torch.compile"));
}

TEST(Tables, RulesTheMostFrequentFirst) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("a", 1, 1), fail("b", 2), fail("b", 2, 1),
                                     record("b", 2, Outcome::kNoCode, Stage::kExtract, 2)};
  EXPECT_EQ(rules_table(make_row("rl", {records[0]})), "");
  std::string wrong = name_of(records[1].verdict.finding().rule());
  std::vector<std::string> lines = lines_of(rules_table(make_row("rl", records)));
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines[1], StartsWith(wrong));
  EXPECT_THAT(lines[1], HasSubstr("wrong_output"));
  EXPECT_THAT(lines[1], EndsWith("1        2    3"));
  EXPECT_THAT(lines[2], EndsWith("-        1    1"));
}

TEST(Tables, OperatorsOfMostTasks) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("b", 1), pass("c", 1)};
  TaskOperators operators = {{"a", {"abs", "relu"}}, {"b", {"relu"}}, {"c", {"tanh"}}};
  EXPECT_EQ(operators_table(make_row("rl", records)), "");
  std::vector<std::string> lines = lines_of(operators_table(make_row("rl", records, operators), 2));
  EXPECT_THAT(lines[1], StartsWith("relu          2        2     50.0 % (9-91)"));
  EXPECT_THAT(lines[2], StartsWith("abs "));
  EXPECT_EQ(lines[3], "and 1 operators of fewer tasks");
  std::string all = all_tables(make_row("rl", records, operators));
  EXPECT_THAT(all, HasSubstr("\n\ngot through"));
  EXPECT_THAT(all, HasSubstr("\n\noperator"));
  EXPECT_EQ(all.find("\n\n\n"), std::string::npos);
}

}  // namespace
}  // namespace tritonrl::tables_test
