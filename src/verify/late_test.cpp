// SPDX-License-Identifier: Apache-2.0
// Candidates that compute for too long in a stage, and those that are slow for no fault of their own.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <thread>

#include "support/trial.h"

namespace tritonrl::late_test {
namespace {

using trial::candidate;
using trial::Status;

using Cost = std::function<double(const Job& job)>;  // Seconds of processor time.

// Honest children, which their monitors end when they reach their limit.
FakePool::Answer computing(const Cost& cost) {
  return [cost](const Job& job, const std::string& nonce) {
    JobAnswer answer = honest_answer(job, nonce);
    answer.own_s = cost(job);
    if (answer.own_s < job.deadline_s) return answer;
    answer.own_s = job.deadline_s + 0.03;  // Its monitor looks every few milliseconds.
    answer.status = Status::kDeadline;
    answer.code = SIGKILL;
    answer.result = "";
    return answer;
  };
}

std::vector<Verdict> verify(FakePool::Answer answer, const std::vector<Candidate>& candidates, const OwnLimits& limits,
                            VerifyConfig config = {}) {
  auto verifier = Verifier::over(std::make_unique<FakePool>(std::move(answer)), fake_judge(honest_judge), config);
  std::vector<Verdict> verdicts(candidates.size());
  auto stream = verifier->stream([&](size_t i, Verdict verdict) { verdicts[i] = std::move(verdict); }, 0, limits);
  for (size_t i = 0; i < candidates.size(); ++i) stream->submit(i, candidates[i]);
  stream->finish();
  return verdicts;
}

Verdict verify(FakePool::Answer answer, const OwnLimits& limits) {
  return verify(std::move(answer), std::vector{candidate()}, limits)[0];
}

const StageResult& at(const Verdict& verdict, Stage stage) {
  for (const StageResult& result : verdict.stages) {
    if (result.stage == stage) return result;
  }
  throw std::runtime_error("no such stage");
}

bool is_compile(const Job& job) { return job.kind == "compile"; }

// One kernel of many takes a minute to compile.
TEST(Late, OneSlowCompileAmongFastOnes) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < 40; ++i) candidates.push_back(candidate(cat("c", i), cat("x = ", i, "\n")));
  candidates[17].text = "x = 'slow'\n";
  auto slow = [](const std::string& text) { return text.find("slow") != std::string::npos; };
  auto answer = [&](const Job& job, const std::string& nonce) {
    Cost cost = [&](const Job& one) { return is_compile(one) && slow(one.args.dump()) ? 20 : 0.3; };
    if (kind_of(job) != "record" || !slow(job.args["candidate_source"])) return computing(cost)(job, nonce);
    TraceFile file = trace(job.args);
    file.kernels[0].source = "def slow(x): pass";
    return record_answer(nonce, file);
  };
  for (double limit : {10.0, OwnTime::kNoLimit}) {
    OwnLimits limits = {{Stage::kCompile, limit}};
    std::vector<Verdict> verdicts = verify(answer, candidates, limits);
    for (size_t i = 0; i < verdicts.size(); ++i) {
      EXPECT_TRUE(i == 17 || verdicts[i].correct()) << i << ": " << verdicts[i].reason();
    }
    if (limit > 10) {
      EXPECT_TRUE(verdicts[17].correct()) << "the deadline is longer";
      EXPECT_GE(at(verdicts[17], Stage::kCompile).own_s.value(), 20);
      continue;
    }
    EXPECT_EQ(verdicts[17].outcome, Outcome::kTimeout);
    EXPECT_EQ(verdicts[17].stopped_at, Stage::kCompile);
    EXPECT_EQ(verdicts[17].finding().rule(), Rule::kLate);
    EXPECT_LT(at(verdicts[17], Stage::kCompile).own_s, 11) << "it was ended when its time was up";
  }
}

TEST(Late, WaitingIsNotComputing) {
  auto loaded = [](const Job& job, const std::string& nonce) {
    if (kind_of(job) == "record") std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    return computing([](const Job&) { return 0.1; })(job, nonce);
  };
  Verdict verdict = verify(loaded, {{Stage::kCompile, 1.0}});
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  EXPECT_GT(at(verdict, Stage::kCompile).seconds, 1.1);
  EXPECT_LT(at(verdict, Stage::kCompile).own_s.value(), 0.3);
}

TEST(Late, AReferenceIsNotOnTheCandidatesClock) {
  Verdict verdict = verify(computing([](const Job& job) { return kind_of(job) == "reference" ? 50 : 0.1; }),
                           {{Stage::kCompile, 1.0}});
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
}

TEST(Late, OurFaultsStayOurs) {
  for (const char* kind : {"record", "compile", "interpret"}) {
    for (Status status : {Status::kLost, Status::kForkFailed, Status::kKilled, Status::kStarved}) {
      auto lost = trial::lying(kind, [&](const Job&, const std::string&) {
        JobAnswer answer;
        answer.status = status;
        answer.own_s = 1000;
        return answer;
      });
      OwnLimits limits = {{Stage::kCompile, 1.0}, {Stage::kTinyRun, 1.0}, {Stage::kFullRun, 1.0}};
      EXPECT_EQ(verify(lost, limits).outcome, Outcome::kHarnessFault) << kind;
    }
  }
}

TEST(Late, RunsOfAStageAddUp) {
  auto costs = computing([](const Job& job) { return job.kind == "interpret" ? 0.6 : 0.1; });
  Verdict in_time = verify(costs, {{Stage::kTinyRun, 1.3}, {Stage::kFullRun, 1.9}});
  EXPECT_TRUE(in_time.correct()) << in_time.reason();
  EXPECT_DOUBLE_EQ(at(in_time, Stage::kTinyRun).own_s.value(), 1.2);
  EXPECT_DOUBLE_EQ(at(in_time, Stage::kFullRun).own_s.value(), 1.8);
  Verdict late = verify(costs, {{Stage::kTinyRun, 1.3}, {Stage::kFullRun, 1.5}});
  EXPECT_EQ(late.finding().rule(), Rule::kLate);
  EXPECT_EQ(late.stopped_at, Stage::kFullRun);
  ASSERT_FALSE(late.cases.empty());
  EXPECT_EQ(late.cases.back().finding.rule(), Rule::kLate);
}

// Else a candidate could be accepted whose launches do nothing.
TEST(Late, WhatIsTooSlowWithoutItsLaunchesIsNotTrusted) {
  for (Status status : {Status::kDeadline, Status::kSignaled}) {
    Verdict verdict = verify(trial::lying("interpret",
                                          [&](const Job& job, const std::string& nonce) {
                                            if (trial::has_launches(job)) return honest_answer(job, nonce);
                                            JobAnswer answer;
                                            answer.status = status;
                                            answer.code = SIGXCPU;
                                            answer.own_s = 1000;
                                            return answer;
                                          }),
                             {});
    EXPECT_EQ(verdict.outcome, Outcome::kTimeout);
    EXPECT_EQ(verdict.stopped_at, Stage::kTinyRun);
  }
}

// The first of those who share a kernel compiles it; the second is charged all the same.
TEST(Late, WhoComesFirstDoesNotMatter) {
  auto answer = [](const Job& job, const std::string& nonce) {
    return computing([](const Job& one) {
      if (is_compile(one)) return 3.0;
      return kind_of(one) == "record" && one.args["candidate_source"] == "x = 'heavy'\n" ? 2.0 : 0.5;
    })(job, nonce);
  };
  Candidate light = candidate("light", "x = 'light'\n"), heavy = candidate("heavy", "x = 'heavy'\n");
  VerifyConfig config;
  config.workers = 1;
  for (const std::vector<Candidate>& order : {std::vector{light, heavy}, std::vector{heavy, light}}) {
    for (const Verdict& verdict : verify(answer, order, {{Stage::kCompile, 4.0}}, config)) {
      bool is_heavy = verdict.candidate_id == "heavy";
      EXPECT_EQ(verdict.finding().rule(), is_heavy ? Rule::kLate : Rule::kPass) << verdict.candidate_id;
      double own_s = at(verdict, Stage::kCompile).own_s.value();
      EXPECT_TRUE(is_heavy ? own_s > 3.8 : own_s == 3.5) << own_s;
    }
  }
}

}  // namespace
}  // namespace tritonrl::late_test
