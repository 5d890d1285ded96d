// SPDX-License-Identifier: Apache-2.0
#include "rollout/overlap.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files/json.h"
#include "base/log.h"
#include "base/text.h"
#include "support/fake_jobs.h"

namespace tritonrl::overlap_test {
namespace {

using namespace std::chrono_literals;

Rollout rollout(size_t i) {
  std::vector<int32_t> tokens(10, static_cast<int32_t>(i));
  return {tokens, std::vector<float>(10, -0.125f), true,
          cat("```python\nx = ", i % 5, i % 3 == 0 ? "(" : "", "\n```\n")};
}

struct Drawn : Collected {
  int64_t records = 0;
  bool verified_while_sampling = false;
};

// Twelve answers, the last of which comes once a worker has recorded something, or after `patience`.
Drawn draw(bool stream, std::chrono::milliseconds patience) {
  auto pool = std::make_unique<FakePool>([](const Job& job, const std::string& nonce) {
    if (job.kind == "record") std::this_thread::sleep_for(5ms);
    return honest_answer(job, nonce);
  });
  FakePool* jobs = pool.get();
  VerifyConfig config;
  config.workers = 3;
  auto verifier = Verifier::over(std::move(pool), fake_judge(honest_judge), config);
  std::vector<Candidate> candidates;
  for (int i = 0; i < 12; ++i) {
    Candidate one;
    one.id = cat("c", i);
    one.task.id = "t";
    one.task.source = "class Model: pass\n";
    candidates.push_back(one);
  }
  Drawn out;
  auto sampler = [&](const GenerateProgress& progress, const auto& on_answer) {
    for (size_t done = 0; done < 12; ++done) {
      auto until = std::chrono::steady_clock::now() + patience;
      while (done == 11 && jobs->count("record") == 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(1ms);
      }
      size_t i = done * 5 % 12;  // They end in another order than they were asked for.
      on_answer(i, rollout(i));
      EXPECT_TRUE(progress(static_cast<int64_t>(done) + 1, 12, 10 * (static_cast<int64_t>(done) + 1)));
    }
    out.verified_while_sampling = jobs->count("record") > 0;
  };
  static_cast<Collected&>(out) = sample_and_verify(*verifier, candidates, sampler, {"test", stream}, 1, nullptr);
  out.records = jobs->count("record");
  return out;
}

TEST(Overlap, BringsTheSameVerdictsInTheSameOrder) {
  Drawn apart = draw(false, 50ms), beside = draw(true, 10s);
  ASSERT_EQ(apart.verdicts.size(), 12u);
  ASSERT_EQ(beside.verdicts.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    auto text = [](Verdict verdict) {
      for (StageResult& stage : verdict.stages) stage.seconds = 0;
      verdict.triton_compile_s.reset();
      return to_json(verdict).dump();
    };
    EXPECT_EQ(beside.verdicts[i].candidate_id, cat("c", i));
    EXPECT_EQ(text(beside.verdicts[i]), text(apart.verdicts[i]));
    EXPECT_EQ(beside.verdicts[i].outcome, i % 3 == 0 ? Outcome::kSyntaxError : Outcome::kPass);
  }
  EXPECT_EQ(apart.records, beside.records) << "equal answers are verified once";
  EXPECT_EQ(apart.tokens, 120);
  EXPECT_EQ(beside.tokens, 120);
}

TEST(Overlap, VerifiesWhileOthersAreSampledOrOnlyBehindThem) {
  Drawn apart = draw(false, 50ms), beside = draw(true, 10s);
  EXPECT_FALSE(apart.verified_while_sampling);
  EXPECT_TRUE(beside.verified_while_sampling);
  EXPECT_LE(apart.times.verify, apart.times.verify_alone);
  EXPECT_GT(apart.times.rollout, 0.04);
  EXPECT_GT(beside.times.verify, beside.times.verify_alone);
  EXPECT_LE(beside.times.verify, beside.times.rollout + beside.times.verify_alone + 1e-6);
  EXPECT_EQ(beside.times.gave_way, 0);
}

// What was there when it was stopped is neither drawn nor verified again, streaming or not.
TEST(Overlap, AJournalSavesWhatWasDone) {
  std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "tritonrl_overlap.jsonl";
  for (bool stream : {false, true}) {
    std::filesystem::remove(file);
    VerifyConfig config;
    config.workers = 2;
    std::vector<Candidate> candidates;
    for (int i = 0; i < 9; ++i) candidates.push_back({cat("c", i), {}, "", false});
    int64_t calls = 0;
    std::vector<Verdict> before;
    for (size_t answers_left : {9u, 0u, 4u}) {
      if (answers_left == 4) {  // As a stop would have left it: half of the answers, fewer verdicts.
        auto lines = split(trim(read_file(file)), '\n');
        std::string kept = lines[0] + "\n";
        int verdicts = 0;
        for (const std::string& line : lines) {
          Json json = Json::parse(line);
          if (json.contains("tokens") && json["candidate"] < 5) kept += line + "\n";
          if (json.contains("verdict") && json["candidate"] < 5 && ++verdicts <= 3) kept += line + "\n";
        }
        write_file(file, kept);
      }
      RolloutJournal journal(file, "test");
      EXPECT_EQ(journal.answers_found(), 9 - static_cast<int64_t>(answers_left));
      auto verifier = verifier_over(honest_answer, config);
      calls = 0;
      auto sampler = [&](const GenerateProgress& progress, const auto& on_answer) {
        for (size_t i = 0; i < 9; ++i) {
          calls += journal.answer(1, i) == nullptr;
          on_answer(i, rollout(i));
        }
        progress(9, 9, 10 * calls);
      };
      int64_t sampled = 0;
      Collecting how{"test", stream, &journal, {}, [&] { ++sampled; }};
      Collected all = sample_and_verify(*verifier, candidates, sampler, how, 1, nullptr);
      EXPECT_EQ(calls, static_cast<int64_t>(answers_left));
      EXPECT_EQ(sampled, 1);
      EXPECT_EQ(all.tokens, 90);
      EXPECT_EQ(all.times.drawn, 10 * calls);
      EXPECT_EQ(all.times.judged, answers_left == 9 ? 9 : answers_left == 0 ? 0 : 6);
      ASSERT_EQ(all.verdicts.size(), 9u);
      for (size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(all.verdicts[i].candidate_id, cat("c", i));
        if (before.empty()) continue;
        EXPECT_EQ(all.verdicts[i].outcome, before[i].outcome);
        EXPECT_TRUE(answers_left > 0 || to_json(all.verdicts[i]) == to_json(before[i]));
      }
      before = all.verdicts;
    }
  }
}

TEST(Overlap, LimitsHoldForEveryCandidate) {
  auto verifier = verifier_over([](const Job& job, const std::string& nonce) {
    JobAnswer answer = honest_answer(job, nonce);
    if (job.kind == "record") answer.own_s = 5;
    return answer;
  });
  auto sampler = [](const GenerateProgress&, const auto& on_answer) {
    for (size_t i = 0; i < 3; ++i) on_answer(i, rollout(i + 1));
  };
  for (bool stream : {false, true}) {
    for (double limit : {4.0, 6.0}) {
      Collecting how{"test", stream, nullptr, {{Stage::kCompile, limit}}};
      Collected all = sample_and_verify(*verifier, std::vector<Candidate>(3), sampler, how, 1, nullptr);
      for (const Verdict& verdict : all.verdicts) {
        if (verdict.outcome == Outcome::kSyntaxError) continue;
        EXPECT_EQ(verdict.finding().rule(), limit < 5 ? Rule::kLate : Rule::kPass);
      }
    }
  }
}

TEST(Overlap, AFailureOfTheSamplerEndsTheVerifier) {
  auto verifier = verifier_over(honest_answer);
  std::vector<Candidate> candidates(3);
  auto fails = [](const GenerateProgress&, const auto& on_answer) {
    on_answer(0, rollout(1));
    throw environment_error("memory ran out");
  };
  EXPECT_THROW(sample_and_verify(*verifier, candidates, fails, {"test", true}, 1, nullptr), Error);
}

}  // namespace
}  // namespace tritonrl::overlap_test
