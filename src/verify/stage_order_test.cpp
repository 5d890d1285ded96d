// SPDX-License-Identifier: Apache-2.0
// Stopping early must change what is spent and nothing else: random scripts of a candidate's jobs, verified both ways.
#include "verify/stage_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"
#include "support/fake_jobs.h"
#include "support/made_up_finding.h"
#include "verify/verifier.h"

namespace tritonrl::stage_order_test {
namespace {

StageResult result(Stage stage, Outcome outcome) { return {stage, 0, made_up_finding(outcome)}; }

TEST(Staged, GoesOnAfterAPassAndStopsAtTheFirstFailure) {
  Staged order;
  std::vector<StageResult> done;
  for (int stage = 0; stage < kStageCount; ++stage) {
    ASSERT_EQ(order.next(done), static_cast<Stage>(stage));
    for (int outcome = 1; outcome < kOutcomeCount; ++outcome) {
      auto failed = done;
      failed.push_back(result(static_cast<Stage>(stage), static_cast<Outcome>(outcome)));
      EXPECT_EQ(order.next(failed), std::nullopt);
    }
    done.push_back(result(static_cast<Stage>(stage), Outcome::kPass));
  }
  EXPECT_EQ(order.next(done), std::nullopt);
}

TEST(EveryStage, GoesOnWhileThereIsSomethingToRun) {
  EveryStage order;
  auto after = [&](Stage stage, Outcome outcome) { return order.next({result(stage, outcome)}); };
  EXPECT_EQ(after(Stage::kExtract, Outcome::kNoCode), std::nullopt);
  EXPECT_EQ(after(Stage::kSyntax, Outcome::kSyntaxError), Stage::kCompile);
  EXPECT_EQ(after(Stage::kCompile, Outcome::kRuleBreak), std::nullopt);
  EXPECT_EQ(after(Stage::kTinyRun, Outcome::kWrongOutput), Stage::kFullRun);
  EXPECT_EQ(after(Stage::kFullRun, Outcome::kTimeout), Stage::kTime);
  EXPECT_EQ(after(Stage::kTinyRun, Outcome::kHarnessFault), std::nullopt);
  EXPECT_EQ(after(Stage::kTime, Outcome::kPass), std::nullopt);
}

// --- A pipeline over scripted workers.

// How a candidate behaves, as far as its jobs tell: 0 = well, else one of the ways to fail.
struct Script {
  int64_t record = 0, compile = 0, tiny = 0, full = 0;
  bool syntax = true, code = true;
};

JobAnswer run_of(const std::string& nonce, int64_t how, bool launches) {
  const float garbage[4] = {NAN, NAN, NAN, NAN}, wrong[4] = {2, -4, 6, 7};
  if (how == 3) return failure(nonce, "runtime_error");
  if (how == 4) return interpret_answer(nonce, kExpected);  // With or without its launches.
  if (!launches || how == 2) return interpret_answer(nonce, garbage);
  return how == 1 ? interpret_answer(nonce, wrong) : interpret_answer(nonce, kExpected);
}

FakePool::Answer worker(const Script& script) {
  return [script](const Job& job, const std::string& nonce) {
    if (kind_of(job) == "reference") return reference_answer(nonce, job);
    if (job.kind == "compile") return script.compile ? failure(nonce, "compile_error") : compile_answer(nonce);
    if (job.kind == "record") {
      if (script.record == 1) return failure(nonce, "unsupported");
      return record_answer(nonce, trace(job.args));
    }
    return run_of(nonce, job.args["case"] == "tiny" ? script.tiny : script.full, job.args["launches"].get<bool>());
  };
}

struct Trial {
  Verdict verdict;
  int64_t jobs = 0;
};

Trial run(const Script& script, std::shared_ptr<const StageOrder> order) {
  auto pool = std::make_unique<FakePool>(worker(script));
  FakePool* jobs = pool.get();
  VerifySeams seams;
  seams.order = std::move(order);
  auto verifier = Verifier::over(std::move(pool), fake_judge(honest_judge), {}, seams);
  Candidate one;
  one.id = "c";
  one.task.id = "double";
  one.task.source = "# task";
  one.task.tiny = {{"N", 2}};
  one.text = !script.code ? "" : script.syntax ? "x = 1\n" : "x = (\n";
  one.is_code = true;
  Verdict verdict = verifier->verify({&one, 1})[0];
  return {verdict, jobs->count("record") + jobs->count("interpret") + jobs->count("compile")};
}

TEST(Staged, SameVerdictAsEveryStageForLessWork) {
  Rng rng(5);
  int64_t fewer = 0, passed = 0;
  std::set<std::pair<Stage, Outcome>> ends;
  for (int trial = 0; trial < 200; ++trial) {
    auto now_and_then = [&](int64_t ways) { return rng.below(3) == 0 ? 1 + rng.below(ways) : 0; };
    Script script{now_and_then(1) * now_and_then(1),
                  now_and_then(1) * now_and_then(1),
                  now_and_then(4),
                  now_and_then(3),
                  rng.below(8) > 0,
                  rng.below(16) > 0};
    Trial early = run(script, std::make_shared<Staged>()), all = run(script, std::make_shared<EveryStage>());
    EXPECT_EQ(early.verdict.outcome, all.verdict.outcome) << trial;
    EXPECT_EQ(early.verdict.stopped_at, all.verdict.stopped_at) << trial;
    EXPECT_EQ(early.verdict.reason(), all.verdict.reason()) << trial;
    EXPECT_EQ(early.verdict.correct(), all.verdict.correct()) << trial;
    for (int stage = 0; stage < kStageCount; ++stage) {
      if (static_cast<Stage>(stage) > early.verdict.stopped_at) continue;
      EXPECT_EQ(early.verdict.passed(static_cast<Stage>(stage)), all.verdict.passed(static_cast<Stage>(stage)))
          << trial;
    }
    EXPECT_LE(early.jobs, all.jobs) << trial;
    fewer += early.jobs < all.jobs;
    passed += early.verdict.correct();
    ends.insert({early.verdict.stopped_at, early.verdict.outcome});
  }
  EXPECT_GT(fewer, 20);
  EXPECT_GT(passed, 20);
  EXPECT_GE(ends.size(), 6u);
}

}  // namespace
}  // namespace tritonrl::stage_order_test
