// SPDX-License-Identifier: Apache-2.0
// Metrics against numbers worked out by hand.
#include "eval/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/secure_hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "eval/peer.h"
#include "support/made_up_run.h"

namespace tritonrl::metrics_test {
namespace {

using namespace made_up;  // NOLINT(google-build-using-namespace)

// Three conversations of one task: right at once; corrected at turn 2; a fault at turn 2. A fourth never gets it right.
TEST(Metrics, TurnsCountWithinAndOnlyThere) {
  std::vector<EvalRecord> records = {pass("a", 1, 0), fail("a", 1, 1), fail("a", 1, 2), fail("a", 1, 3)};
  LevelMetrics before = make_row("rl", records).levels["all"];
  EXPECT_TRUE(before.correct_within.empty());
  auto later = [&](EvalRecord one, int64_t turn) {
    one.turn = turn;
    records.push_back(one);
  };
  later(pass("a", 1, 1), 2);
  later(record("a", 1, Outcome::kHarnessFault, Stage::kExtract, 2), 2);
  later(fail("a", 1, 3), 2);
  later(fail("a", 1, 3), 3);
  ResultsRow row = make_row("rl", records);
  const LevelMetrics& m = row.levels["all"];
  ASSERT_EQ(m.correct_within.size(), 3u);
  std::vector<std::pair<int64_t, int64_t>> got;
  for (const Rate& rate : m.correct_within) got.emplace_back(rate.k, rate.n);
  EXPECT_EQ(got, (std::vector<std::pair<int64_t, int64_t>>{{1, 4}, {2, 3}, {2, 3}}));
  EXPECT_EQ(m.samples, 4);  // All else is about first answers.
  EXPECT_EQ(m.correct.k, 1);
  EXPECT_EQ(m.harness_faults, 0);
  EXPECT_EQ(m.outcomes, before.outcomes);
  EXPECT_EQ(m.pass_at.size(), before.pass_at.size());
  EXPECT_EQ(compare_correct("a", records, "b", records).difference, 0);
  ResultsRow again = results_row_from_json(to_json(row), "test");
  EXPECT_EQ(to_json(again), to_json(row));
  EXPECT_FALSE(to_json(make_row("rl", {pass("a", 1)}))["levels"]["all"].contains("correct_within"));
}

TEST(Metrics, CountsStagesPerLevelAndOverall) {
  std::vector<EvalRecord> records = {
      record("a", 1, Outcome::kNoCode, Stage::kExtract),       record("a", 1, Outcome::kSyntaxError, Stage::kSyntax, 1),
      record("b", 1, Outcome::kCompileError, Stage::kCompile), record("b", 1, Outcome::kTimeout, Stage::kFullRun, 1),
      record("c", 2, Outcome::kUnsupported, Stage::kCompile),  pass("c", 2, 1),
  };
  records[3].finished = "length";
  records[3].tokens = 400;
  ResultsRow row = make_row("sft", records);
  ASSERT_THAT(row.levels, testing::SizeIs(3));
  const LevelMetrics& one = row.levels.at("1");
  EXPECT_EQ(one.samples, 4);
  EXPECT_EQ(one.tasks, 2);
  EXPECT_EQ(one.valid.k, 2);
  EXPECT_EQ(one.compiled.k, 1);
  EXPECT_EQ(one.correct.k, 0);
  EXPECT_EQ(one.truncated.k, 1);
  EXPECT_DOUBLE_EQ(one.mean_tokens, 175);
  EXPECT_FALSE(one.speedup.has_value());
  EXPECT_THAT(one.outcomes, testing::ElementsAre(testing::Pair("compile_error", 1), testing::Pair("no_code", 1),
                                                 testing::Pair("syntax_error", 1), testing::Pair("timeout", 1)));
  EXPECT_THAT(one.stopped_at, testing::ElementsAre(testing::Pair("compile", 1), testing::Pair("extract", 1),
                                                   testing::Pair("full_run", 1), testing::Pair("syntax", 1)));
  const LevelMetrics& all = row.levels.at("all");
  EXPECT_EQ(all.samples, 6);
  EXPECT_EQ(all.correct.k, 1);
  EXPECT_EQ(all.valid.k, 4);     // unsupported got past the syntax stage.
  EXPECT_EQ(all.compiled.k, 2);  // ... but was not recorded.
  // Wilson for 1 of 6: centre (1/6 + z2/12) / (1 + z2/6), z2 = 3.8414588.
  EXPECT_NEAR(all.correct.interval().low, 0.0301, 1e-4);
  EXPECT_NEAR(all.correct.interval().high, 0.5635, 1e-4);
}

TEST(Metrics, HarnessFaultsAreLeftOutOfN) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("a", 1, 1)};
  records.push_back(record("a", 1, Outcome::kHarnessFault, Stage::kCompile, 2));
  records.push_back(record("z", 1, Outcome::kHarnessFault, Stage::kCompile));
  records.back().tokens = 9999;
  LevelMetrics m = make_row("base", records).levels.at("all");
  EXPECT_EQ(m.samples, 2);
  EXPECT_EQ(m.tasks, 1) << "a task with nothing but harness faults was not measured";
  EXPECT_EQ(m.harness_faults, 2);
  EXPECT_EQ(m.correct.n, 2);
  EXPECT_DOUBLE_EQ(m.mean_tokens, 100);
  EXPECT_FALSE(m.outcomes.contains("harness_fault"));
  ASSERT_FALSE(m.pass_at.empty());
  EXPECT_DOUBLE_EQ(m.pass_at[0].value, 0.5);
  EXPECT_THAT(m.pass_at, testing::SizeIs(1)) << "two scored samples do not give pass@3";
}

TEST(Metrics, PassAtKIsUnbiasedAndNeedsEnoughSamples) {
  std::vector<EvalRecord> records;
  add_task(records, "a", 1, 5, 2);
  add_task(records, "b", 1, 5, 0);
  add_task(records, "c", 1, 3, 3);  // Too few samples for pass@5.
  LevelMetrics m = make_row("rl", records).levels.at("1");
  ASSERT_THAT(m.pass_at, testing::SizeIs(3));
  EXPECT_EQ(m.pass_at[0].k, 1);
  EXPECT_NEAR(m.pass_at[0].value, (0.4 + 0 + 1) / 3, 1e-12);
  EXPECT_EQ(m.pass_at[1].k, 3);
  EXPECT_NEAR(m.pass_at[1].value, (0.9 + 0 + 1) / 3, 1e-12);  // 1 - C(3,3) / C(5,3) = 0.9.
  EXPECT_EQ(m.pass_at[1].tasks, 3);
  EXPECT_EQ(m.pass_at[2].k, 5);
  EXPECT_NEAR(m.pass_at[2].value, 0.5, 1e-12);
  EXPECT_EQ(m.pass_at[2].tasks, 2);
  EXPECT_LE(m.pass_at[0].interval.low, m.pass_at[0].value);
  EXPECT_GE(m.pass_at[0].interval.high, m.pass_at[0].value);
}

TEST(Metrics, SpeedupIsAGeometricMeanOverTimedCorrectSamples) {
  std::vector<EvalRecord> records = {pass("a", 1), pass("a", 1, 1), pass("a", 1, 2), pass("a", 1, 3), fail("a", 1, 4)};
  records[0].verdict.speedup = 4.0;
  records[1].verdict.speedup = 0.5;
  records[2].verdict.speedup = 1.0;
  records[4].verdict.speedup = 100.0;  // Not correct: does not count. records[3] was not timed.
  LevelMetrics m = make_row("rl", records).levels.at("all");
  ASSERT_TRUE(m.speedup.has_value());
  EXPECT_NEAR(m.speedup->geometric_mean, std::cbrt(2.0), 1e-12);
  EXPECT_EQ(m.speedup->faster.n, 3);
  EXPECT_EQ(m.speedup->faster.k, 1) << "exactly 1.0 is not faster";
}

// Six answers to three tasks on a GPU: ratios 2.5, 1.1 and 0.9 among the correct ones.
std::vector<EvalRecord> timed() {
  std::vector<EvalRecord> records = {pass("a", 1),    pass("a", 1, 1),
                                     fail("b", 1),    pass("c", 2),
                                     fail("c", 2, 1), record("c", 2, Outcome::kHarnessFault, Stage::kTime, 2)};
  records[0].verdict.speedup = 2.5;
  records[1].verdict.speedup = 1.1;
  records[3].verdict.speedup = 0.9;
  for (EvalRecord& one : records) one.verdict.path = VerifyPath::kReplay;
  return records;
}

std::vector<std::pair<double, std::string>> shares(const LevelMetrics& m) {
  std::vector<std::pair<double, std::string>> out;
  for (const FastShare& share : m.fast) out.emplace_back(share.p, cat(share.rate.k, "/", share.rate.n));
  return out;
}

TEST(Metrics, FastPIsOfAllAnswersAndStrict) {
  ResultsRow row = make_row("rl", timed());
  using Shares = std::vector<std::pair<double, std::string>>;
  EXPECT_EQ(shares(row.levels["all"]), (Shares{{0.8, "3/5"}, {1, "2/5"}, {1.2, "1/5"}, {2, "1/5"}}));
  EXPECT_EQ(shares(row.levels["1"]), (Shares{{0.8, "2/3"}, {1, "2/3"}, {1.2, "1/3"}, {2, "1/3"}}));
  EXPECT_EQ(shares(row.levels["2"]), (Shares{{0.8, "1/2"}, {1, "0/2"}, {1.2, "0/2"}, {2, "0/2"}}));
  std::vector<EvalRecord> at = timed();
  at[0].verdict.speedup = 2.0;
  at[1].verdict.speedup = 1.0;
  EXPECT_EQ(shares(make_row("rl", at).levels["1"]), (Shares{{0.8, "2/3"}, {1, "1/3"}, {1.2, "1/3"}, {2, "0/3"}}))
      << "more than p times as fast: a ratio of p is not";
}

TEST(Metrics, FastPIsNotMeasuredWithoutTimes) {
  std::vector<EvalRecord> none = {pass("a", 1), fail("a", 1, 1)};
  EXPECT_TRUE(make_row("rl", none).levels["all"].fast.empty());
  std::vector<EvalRecord> some = timed();
  some[1].verdict.speedup.reset();
  ResultsRow row = make_row("rl", some);
  EXPECT_TRUE(row.levels["1"].fast.empty()) << "a correct answer without a time may be of either sort";
  EXPECT_FALSE(row.levels["2"].fast.empty());
  std::vector<EvalRecord> wrong = {fail("a", 1)};
  EXPECT_TRUE(make_row("rl", wrong).levels["all"].fast.empty());
  wrong[0].verdict.path = VerifyPath::kReplay;
  EXPECT_EQ(shares(make_row("rl", wrong).levels["all"])[1].second, "0/1") << "on a GPU none is none";
}

TEST(Metrics, PassAtKUpToAHundred) {
  std::vector<EvalRecord> records;
  add_task(records, "a", 1, 100, 1);
  LevelMetrics m = make_row("rl", records).levels.at("all");
  ASSERT_EQ(m.pass_at.size(), kPassAtKs.size());
  for (const PassAtK& p : m.pass_at) EXPECT_NEAR(p.value, static_cast<double>(p.k) / 100, 1e-12) << p.k;
  add_task(records, "b", 1, 20, 15);
  m = make_row("rl", records).levels.at("all");
  EXPECT_EQ(m.pass_at[2].k, 5);
  // b: 1 - C(5, 5) / C(20, 5) = 1 - 1 / 15504.
  EXPECT_NEAR(m.pass_at[2].value, (0.05 + 1 - 1.0 / 15504) / 2, 1e-12);
  EXPECT_EQ(m.pass_at[4].tasks, 2) << "pass@20 needs twenty";
  EXPECT_EQ(m.pass_at[5].tasks, 1);
}

TEST(Metrics, RulesAndFunnel) {
  std::vector<EvalRecord> records = {record("a", 1, Outcome::kNoCode, Stage::kExtract),
                                     record("a", 1, Outcome::kSyntaxError, Stage::kSyntax, 1),
                                     record("b", 1, Outcome::kCompileError, Stage::kCompile),
                                     record("b", 1, Outcome::kTimeout, Stage::kFullRun, 1),
                                     pass("c", 1),
                                     record("c", 1, Outcome::kHarnessFault, Stage::kCompile, 1)};
  records[2].verdict.stages.back().finding = Rule::kTritonCompile;
  records[3].verdict.stages.back().finding = Rule::kLate;
  records.push_back(records[3]);
  LevelMetrics m = make_row("rl", records).levels.at("1");
  EXPECT_EQ(m.rules.at("triton_compile"), 1);
  EXPECT_EQ(m.rules.at("late"), 2);
  int64_t sum = 0;
  for (const auto& [rule, count] : m.rules) sum += count;
  EXPECT_EQ(sum, m.samples - m.correct.k) << "each failure has a rule, and no fault of ours";
  const int64_t through[] = {5, 4, 3, 3, 1, 1};
  for (int s = 0; s < kStageCount; ++s) EXPECT_EQ(m.through(static_cast<Stage>(s)), (Rate{through[s], 6})) << s;
  EXPECT_EQ(m.through(Stage::kCompile), m.compiled);
}

TEST(Metrics, ByOperator) {
  TaskOperators operators = {{"a", {"relu", "softmax"}}, {"b", {"relu"}}, {"c", {"matmul"}}, {"never asked", {"sum"}}};
  std::vector<EvalRecord> records = timed();
  ResultsRow row = make_row("rl", records, operators);
  ASSERT_THAT(row.operators, testing::SizeIs(3));
  const OperatorMetrics& relu = row.operators.at("relu");
  EXPECT_EQ(relu.tasks, 2);
  EXPECT_EQ(relu.correct, (Rate{2, 3}));
  EXPECT_NEAR(relu.speedup->geometric_mean, std::sqrt(2.5 * 1.1), 1e-12);
  EXPECT_EQ(row.operators.at("softmax").correct, (Rate{2, 2}));
  EXPECT_EQ(row.operators.at("matmul").correct, (Rate{1, 2})) << "without the fault";
  EXPECT_TRUE(make_row("rl", records).operators.empty());
  Json json = to_json(row);
  EXPECT_EQ(to_json(results_row_from_json(Json::parse(json.dump()), "results.json")), json);
  EXPECT_FALSE(to_json(make_row("rl", records)).contains("operators"));
}

// timed(): a at 2.5 and 1.1 (level 1), b wrong (level 1), c at 0.9 and wrong (level 2).
Peer compiled() { return {"torch.compile", {{"a", {2.0, 1.96, 2.04, ""}}, {"c", {0.5, 0.5, 0.5, ""}}}}; }

TEST(Peer, IsAQuotientOfTwoSpeedupsOverEager) {
  ResultsRow row = make_row("rl", timed());
  compare_with_peer(compiled(), timed(), &row);
  EXPECT_EQ(row.peer, "torch.compile");
  const PeerMetrics& one = row.levels["1"].peer.value();
  EXPECT_EQ(one.tasks, 1);
  EXPECT_EQ(one.without, 1) << "b has no time of the peer: its answer is in no n";
  EXPECT_NEAR(one.peer_speedup, 2.0, 1e-12);
  EXPECT_EQ(one.faster, (Rate{1, 2})) << "2.5 / 2 is faster, 1.1 / 2 is not";
  EXPECT_NEAR(one.geometric_mean, std::sqrt(1.25 * 0.55), 1e-12);
  EXPECT_EQ(one.fast, (std::vector<FastShare>{{0.8, {1, 2}}, {1, {1, 2}}, {1.2, {1, 2}}, {2, {0, 2}}}));
  const PeerMetrics& two = row.levels["2"].peer.value();
  EXPECT_EQ(two.faster, (Rate{1, 1})) << "slower than eager, and faster than a peer that is slower still";
  EXPECT_EQ(two.fast[0].rate, (Rate{1, 2})) << "of all answers but the fault";
  EXPECT_NEAR(two.geometric_mean, 1.8, 1e-12);
  const PeerMetrics& all = row.levels["all"].peer.value();
  EXPECT_EQ(all.faster, (Rate{2, 3}));
  EXPECT_NEAR(all.peer_speedup, 1.0, 1e-12);  // sqrt(2 * 0.5).
  Json json = to_json(row);
  EXPECT_EQ(to_json(results_row_from_json(Json::parse(json.dump()), "results.json")), json);
  EXPECT_FALSE(to_json(make_row("rl", timed()))["levels"]["1"].contains("peer"));
}

TEST(Peer, NeitherIsFasterWithinBothIntervals) {
  Verdict verdict = timed()[0].verdict;
  TimingResult timing;
  timing.ratio = 1.03;
  timing.ratio_low = 1.0;
  timing.ratio_high = 1.0609;  // Three per cent either way.
  verdict.speedup = 1;         // Within the noise of eager; beside a peer what was measured counts.
  verdict.timing = timing;
  auto over = [&](double ratio, double width) {
    return speedup_over_peer(verdict, {ratio, ratio / width, ratio * width, ""});
  };
  EXPECT_EQ(over(1.0, 1.001), 1.0);
  EXPECT_NEAR(over(0.9, 1.001), 1.03 / 0.9, 1e-12);
  EXPECT_EQ(over(0.9, 1.2), 1.0) << "the peer is not known well enough";
  EXPECT_NEAR(over(2.0, 1.2), 0.515, 1e-12);
  verdict.timing->ratio_low = verdict.timing->ratio_high = 0;
  verdict.timing->noise_band = 0.05;
  EXPECT_EQ(over(1.0, 1.001), 1.0);
  EXPECT_NEAR(over(0.97, 1.001), 1.03 / 0.97, 1e-12);
  verdict.timing.reset();
  EXPECT_NEAR(over(0.97, 1.001), 1 / 0.97, 1e-12);
}

TEST(Peer, IsNotMeasuredWhereACorrectAnswerHasNoTime) {
  std::vector<EvalRecord> some = timed();
  some[1].verdict.speedup.reset();
  ResultsRow row = make_row("rl", some);
  compare_with_peer(compiled(), some, &row);
  EXPECT_FALSE(row.levels["1"].peer);
  EXPECT_TRUE(row.levels["2"].peer);
  row = make_row("rl", timed());
  compare_with_peer({"other", {{"z", {2, 2, 2, ""}}}}, timed(), &row);
  EXPECT_FALSE(row.levels["all"].peer) << "no task in common";
}

TEST(Peer, FilesAreCheckedAndErrorsOfThePeerAreNoTimes) {
  auto file = std::filesystem::path(testing::TempDir()) / "tritonrl_peer_test.json";
  std::string source = "class Model: pass";
  Json row = {{"source", secure_hash(source)}, {"ratio", 1.5}, {"low", 1.4}, {"high", 1.6}, {"eager_ms", 3}};
  Json json = {{"peer", "torch.compile"}, {"mode", "default"}, {"tasks", {{"a", row}, {"b", {{"error", "no"}}}}}};
  write_file(file, json.dump());
  Peer peer = load_peer(file);
  EXPECT_EQ(peer.name, "torch.compile (default)");
  ASSERT_EQ(peer.times.size(), 1u);
  EXPECT_EQ(peer.times.at("a").high, 1.6);
  EXPECT_NO_THROW(check_same_sources(peer, {{"a", source}, {"b", "anything"}}));
  EXPECT_THROW(check_same_sources(peer, {{"a", source + " "}}), Error);
  for (const char* spoiled : {"ratio", "low", "high", "source"}) {
    Json bad = json;
    bad["tasks"]["a"].erase(spoiled);
    write_file(file, bad.dump());
    EXPECT_THROW(load_peer(file), Error) << spoiled;
  }
  json["tasks"]["a"]["low"] = 1.55;
  write_file(file, json.dump());
  EXPECT_THROW(load_peer(file), Error) << "a ratio outside of its interval";
  json["tasks"].erase("a");
  write_file(file, json.dump());
  EXPECT_THROW(load_peer(file), Error) << "no times at all";
  std::filesystem::remove(file);
}

TEST(Metrics, LengthsThatAreNotKnownAreLeftOut) {
  std::vector<EvalRecord> records = {pass("a", 1), pass("a", 1, 1), fail("a", 1, 2)};
  records[1].finished = "length";
  records[1].tokens = 300;
  records[2].finished = "";
  records[2].tokens = 0;
  LevelMetrics m = make_row("rl", records).levels.at("1");
  EXPECT_EQ(m.samples, 3);
  EXPECT_EQ(m.truncated, (Rate{1, 2}));
  EXPECT_DOUBLE_EQ(m.mean_tokens, 200);
}

// results.json of a run before there were rules and fast_p.
TEST(Metrics, ReadsOlderRows) {
  Json json = to_json(make_row("rl", timed()));
  for (auto& [name, level] : json["levels"].items()) {
    level.erase("fast");
    level.erase("rules");
  }
  ResultsRow row = results_row_from_json(json, "results.json");
  EXPECT_TRUE(row.levels.at("all").fast.empty());
  EXPECT_EQ(row.levels.at("all").correct, (Rate{3, 5}));
}

TEST(Metrics, DoesNotDependOnTheOrderOfRecords) {
  std::vector<EvalRecord> records;
  for (int t = 0; t < 12; ++t) add_task(records, cat("task", t), 1 + t % 2, 4, t % 5);
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].verdict.correct()) records[i].verdict.speedup = 0.3 + 0.1 * static_cast<double>(i);
  }
  Json before = to_json(make_row("rl", records));
  std::vector<EvalRecord> shuffled = records;
  Rng(3).shuffle(shuffled);
  EXPECT_EQ(to_json(make_row("rl", shuffled)), before);
  EXPECT_EQ(to_json(compare_correct("a", records, "b", shuffled)).at("difference"), 0.0);
}

TEST(Metrics, EmptyGivesZeroOfZero) {
  ResultsRow row = make_row("base", {});
  const LevelMetrics& m = row.levels.at("all");
  EXPECT_EQ(m.correct.n, 0);
  EXPECT_EQ(m.correct.interval().high, 1);
  EXPECT_TRUE(m.pass_at.empty());
  EXPECT_EQ(compare_correct("a", {}, "b", {}).tasks, 0);
}

TEST(Metrics, ComparisonPairsTasks) {
  std::vector<EvalRecord> a, b;
  for (int t = 0; t < 20; ++t) {
    add_task(a, cat("t", t), 1, 4, 1);
    add_task(b, cat("t", t), 1, 4, t % 2 == 0 ? 3 : 2);  // +0.5 and +0.25 by turns.
  }
  add_task(a, "only in a", 1, 4, 4);
  add_task(b, "only in b", 2, 4, 0);
  RateDifference c = compare_correct("base", a, "sft", b, 1);
  EXPECT_EQ(c.tasks, 20);
  EXPECT_NEAR(c.difference, 0.375, 1e-12);
  // Standard error of the mean: 0.125 / sqrt(20) = 0.028; 1.96 of them = 0.055.
  EXPECT_NEAR(c.interval.low, 0.375 - 0.055, 0.012);
  EXPECT_NEAR(c.interval.high, 0.375 + 0.055, 0.012);
  RateDifference again = compare_correct("base", a, "sft", b, 1);
  EXPECT_EQ(again.interval.low, c.interval.low) << "fixed seed";
  RateDifference back = compare_correct("sft", b, "base", a, 1);
  EXPECT_NEAR(back.difference, -0.375, 1e-12);
  // Level 2 exists in b alone.
  auto levels = compare_levels("base", a, "sft", b);
  ASSERT_THAT(levels, testing::SizeIs(2));
  EXPECT_EQ(levels[0].level, "1");
  EXPECT_EQ(levels[1].level, "all");
}

TEST(Metrics, BootstrapCoversTheTruthAboutAsOftenAsItSays) {
  // 200 made-up pairs of evaluations with a true difference of +0.2; a 95 % interval should hold it in most of them.
  int covered = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    Rng rng = Rng(11).at(trial);
    std::vector<EvalRecord> a, b;
    for (int t = 0; t < 30; ++t) {
      double p = 0.1 + 0.6 * rng.uniform();
      for (int s = 0; s < 4; ++s) {
        a.push_back(rng.uniform() < p ? pass(cat(t), 1, s) : fail(cat(t), 1, s));
        b.push_back(rng.uniform() < p + 0.2 ? pass(cat(t), 1, s) : fail(cat(t), 1, s));
      }
    }
    RateDifference c = compare_correct("a", a, "b", b);
    covered += c.interval.low <= 0.2 && 0.2 <= c.interval.high;
  }
  EXPECT_GE(covered, 178);
  EXPECT_LE(covered, 199);
}

TEST(Metrics, JsonRoundTrip) {
  std::vector<EvalRecord> records = {pass("a", 1), fail("a", 1, 1), pass("b", 2), fail("b", 2, 1)};
  records[0].verdict.speedup = 1.25;
  ResultsRow row = make_row("sft", records);
  Json json = to_json(row);
  EXPECT_EQ(json.at("model"), "sft");
  EXPECT_EQ(json.at("levels").at("1").at("correct").at("k"), 1);
  EXPECT_TRUE(json.at("levels").at("2").at("speedup").is_null());
  EXPECT_EQ(to_json(results_row_from_json(Json::parse(json.dump()), "results.json")), json);
  RateDifference c = compare_correct("base", records, "sft", records, 2);
  EXPECT_EQ(to_json(comparison_from_json(to_json(c), "results.json")), to_json(c));
  Json whole = results_to_json({row, row}, {c});
  EXPECT_THAT(whole.at("rows"), testing::SizeIs(2));
  EXPECT_THAT(whole.at("comparisons"), testing::SizeIs(1));
}

TEST(Metrics, JsonErrorsNameFieldAndPlace) {
  Json good = to_json(make_row("sft", {pass("a", 1)}));
  auto message = [&](auto&& spoil) -> std::string {
    Json bad = good;
    spoil(bad);
    try {
      results_row_from_json(bad, "results.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([](Json& j) { j.erase("model"); }), testing::HasSubstr("has no field \"model\""));
  EXPECT_THAT(message([](Json& j) { j["levels"]["1"]["correct"]["k"] = 7; }), testing::HasSubstr("k > n"));
  EXPECT_THAT(message([](Json& j) { j["levels"]["1"]["samples"] = -1; }), testing::HasSubstr("not a count"));
  EXPECT_THAT(message([](Json& j) { j["levels"]["1"]["outcomes"]["nice"] = 1; }), testing::HasSubstr("\"nice\""));
  EXPECT_THAT(message([](Json& j) { j["levels"]["all"]["pass_at"] = 3; }), testing::HasSubstr("level all"));
}

}  // namespace
}  // namespace tritonrl::metrics_test
