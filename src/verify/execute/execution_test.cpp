// SPDX-License-Identifier: Apache-2.0
// Execution: what is run when, and what its end means, over an executor that says what the test wants.
#include "verify/execute/execution.h"

#include <gtest/gtest.h>

#include <set>

#include "support/fake_jobs.h"

namespace tritonrl::execution_test {
namespace {

using Choices = std::vector<int64_t>;

// Runs nothing, like a GPU: `run` says how each run ends, `timed` what timing says.
class Scripted : public Executor {
 public:
  std::function<Finding(const JudgeRun&)> run_says;
  TimeAnswer timed;
  bool times = true;
  double waits_s = 0;  // Before each run.

  explicit Scripted(std::function<Finding(const JudgeRun&)> says, TimeAnswer timed)
      : run_says(std::move(says)), timed(std::move(timed)) {}
  VerifyPath path() const override { return VerifyPath::kReplay; }
  bool can_time() const override { return times; }
  bool runs_cubins() const override { return true; }
  double most_growth() const override { return 8; }
  JudgeAnswer begin(const Reference&, const TraceFile&, const KernelSet&) override { return ended({}); }
  JudgeAnswer run(const JudgeRun& run, OwnTime*) override {
    JudgeAnswer answer = ended(run.launches ? run_says(run) : Finding(Rule::kElements));
    answer.waited_s = waits_s;
    return answer;
  }
  TimeAnswer time(JudgeTiming, const TimingProtocol&) override { return timed; }

 private:
  static JudgeAnswer ended(const Finding& finding) {
    JudgeAnswer answer;
    answer.finding = finding;
    answer.lost = finding.outcome() == Outcome::kHarnessFault;
    return answer;
  }
};

// How it went: "" or the rule, with the configuration that is to blame.
struct Went {
  std::string end;
  std::vector<std::string> not_run;
  std::vector<std::pair<std::string, Choices>> runs;  // With launches; those of timing too.
};

// An honest candidate whose launch has three grids to choose from, and one more launch without a choice.
Went go(const std::function<Finding(const JudgeRun&)>& says, TimeAnswer timed = {}, const char* op = "aten.add.Tensor",
        bool times = true, double waits_s = 0, int64_t seeds = 1) {
  FakePool pool([op](const Job& job, const std::string& nonce) {
    if (kind_of(job) != "reference") return honest_answer(job, nonce);
    TraceFile file;
    for (const Json& spec : job.args["cases"]) {
      CaseTrace own = reference_trace(spec["name"].get<std::string>());
      if (op != std::string("aten.add.Tensor")) own.tape = {call_step(op, {0}, 1)};
      file.cases.push_back(std::move(own));
    }
    return exited({{"nonce", nonce}, {"ok", true}}, write_trace_file(file));
  });
  auto judges = fake_judge(honest_judge);
  ReferenceCache references(pool, 60, 1 << 30);
  PlainMean protocol;
  Went went;
  timed.answer.finding = {};
  auto executor = [&] {
    auto made = std::make_unique<Scripted>(
        [&](const JudgeRun& run) {
          went.runs.emplace_back(run.name, run.choices);
          return says(run);
        },
        timed);
    made->times = times;
    made->waits_s = waits_s;
    return made;
  };
  ExecutionTools tools{Tolerance::kFp32, judges.get(), &references, &protocol, true, executor};
  Task task;
  task.id = "t";
  task.source = "N = 4\nclass Model: pass\n";
  Execution path(tools, task, {{"full", {}, false, seeds}, {"tiny", {{"N", 2}}, true, 1}}, {1, 2}, Rng(3), Rng(4));
  auto record = [](Json args, Blob* blob) {
    TraceFile file = trace(args);
    for (CaseTrace& one : file.cases) {
      auto& choices = one.tape[1].choices;
      choices.insert(choices.end(), 2, choices[0]);
      for (size_t i = 0; i < 3; ++i) choices[i].grid = {4, static_cast<int64_t>(1 + i), 1};
      TraceStep plain = launch_step({0, 1});
      plain.choices[0].cubin = -1;
      plain.choices[0].spec = choices[0].spec;
      one.tape.push_back(std::move(plain));
    }
    JobAnswer answer = record_answer("nonce", file);
    auto parsed = parse_blob(std::move(answer.result), "nonce");
    EXPECT_TRUE(parsed) << parsed.why;
    *blob = std::move(*parsed.value);
    return Finding();
  };
  Finding ended = path.record("x = 1\n", record);
  if (ended.passed()) ended = path.tiny_run(20);
  if (ended.passed()) ended = path.full_run(20, false);
  if (ended.passed() && times) ended = path.time(20);
  went.end = ended.passed() ? "" : cat(name_of(ended.rule()), ended.told.configuration.empty() ? "" : " with a choice");
  went.not_run = path.choices_not_run();
  return went;
}

Finding right(const JudgeRun&) { return {}; }

TEST(Execution, EveryChoiceIsRunOnTheSmallestCase) {
  Went went = go(right);
  EXPECT_EQ(went.end, "");
  std::vector<std::pair<std::string, Choices>> runs = {
      {"tiny", {}}, {"tiny", {1}}, {"tiny", {2}}, {"full", {}}, {"full", {}}};
  EXPECT_EQ(went.runs, runs);
  auto wrong = [](const JudgeRun& run) { return run.choices == Choices{2} ? Finding(Rule::kElements) : Finding(); };
  EXPECT_EQ(go(wrong).end, "elements with a choice");
  auto beyond = [](const JudgeRun& run) {
    return run.choices == Choices{1} ? Finding(Rule::kNotInterpretable) : Finding();
  };
  went = go(beyond);
  EXPECT_EQ(went.end, "");
  EXPECT_EQ(went.not_run.size(), 1u);
}

TEST(Execution, WhatWasChosenIsRunOnEveryCase) {
  TimeAnswer timed;
  timed.chosen = {{1}};
  Went went = go(right, timed);
  EXPECT_EQ(went.end, "");
  std::vector<std::pair<std::string, Choices>> last(went.runs.end() - 2, went.runs.end());
  EXPECT_EQ(last, (std::vector<std::pair<std::string, Choices>>{{"full", {1}}, {"tiny", {1}}}));
  const size_t all = went.runs.size();
  timed.chosen = {{0}};
  EXPECT_EQ(go(right, timed).runs.size(), all - 2) << "it was judged before";
  timed.chosen = {{0}, {2}};
  auto ends = [&](Rule rule) {
    return go([rule](
                  const JudgeRun& run) { return run.name == "full" && run.choices == Choices{2} ? rule : Rule::kPass; },
              timed)
        .end;
  };
  EXPECT_EQ(ends(Rule::kElements), "elements with a choice");
  EXPECT_EQ(ends(Rule::kNotFinite), "not_finite with a choice");
  EXPECT_EQ(ends(Rule::kMemoryFault), "memory_fault with a choice");
  for (Rule rule : {Rule::kDeadline, Rule::kOutOfMemory, Rule::kNotReplayable})
    EXPECT_EQ(ends(rule), "") << name_of(rule);
  for (Rule rule : {Rule::kVerifierFailed, Rule::kForgedResult})
    EXPECT_EQ(ends(rule), "verifier_failed") << name_of(rule);
}

// What a tuner takes differs from GPU to GPU: it may be any, at full size too.
TEST(Execution, EveryChoiceMayBeMetAtFullSize) {
  for (bool times : {false, true}) {
    auto often = [times](const std::function<Finding(const JudgeRun&)>& says) {
      TimeAnswer timed;
      timed.chosen = {{0}};
      return go(says, timed, "aten.add.Tensor", times, 0, /*seeds=*/12);
    };
    Went went = often(right);
    EXPECT_EQ(went.end, "");
    std::set<Choices> met;
    size_t full = 0;
    for (const auto& [name, choices] : went.runs) {
      if (name != "full") continue;
      if (full++ == 0) {
        EXPECT_EQ(choices, Choices{});
      }
      met.insert(choices);
    }
    EXPECT_EQ(met, (std::set<Choices>{{}, {1}}));  // The third has three times as many programs.
    auto at_full = [](Rule rule) {
      return [rule](const JudgeRun& run) {
        return run.name == "full" && run.choices == Choices{1} ? Finding(rule) : Finding();
      };
    };
    EXPECT_EQ(often(at_full(Rule::kElements)).end, "elements with a choice");
    EXPECT_EQ(often(at_full(Rule::kNotInterpretable)).end, "") << "the first one stands in for it";
  }
}

TEST(Execution, WaitingForOthersIsOnNobodysClock) {
  std::vector<double> left;
  auto says = [&](const JudgeRun& run) {
    left.push_back(run.deadline_s);
    return Finding();
  };
  EXPECT_EQ(go(says, {}, "aten.add.Tensor", true, /*waits_s=*/15).end, "");  // Twice that is more than there is.
  ASSERT_GE(left.size(), 4u);
  // The clock stood still meanwhile, as this executor pretends only: what it says it waited is left over.
  EXPECT_NEAR(left[1], left[0] + 30, 1) << "a run without launches waits, too";
  EXPECT_NEAR(left[2], left[0] + 45, 1);
}

TEST(Execution, WhereATaskOnlyMovesDataLaunchesHaveTheirShareOfTheTime) {
  auto with = [](double share, const char* op) {
    TimeAnswer timed;
    timed.triton_share = share;
    return go(right, timed, op).end;
  };
  EXPECT_EQ(with(0.05, "aten.clone.default"), "moved_by_library");
  EXPECT_EQ(with(0.2, "aten.clone.default"), "");
  EXPECT_EQ(with(0, "aten.clone.default"), "") << "it was not measured";
  EXPECT_EQ(with(0.05, "aten.add.Tensor"), "");
}

}  // namespace
}  // namespace tritonrl::execution_test
