// SPDX-License-Identifier: Apache-2.0
#include "ext/multi_input/multi_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "support/fake_jobs.h"
#include "verify/verifier.h"

namespace tritonrl::multi_input::multi_input_test {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kFive = {"original", "doubled", "reseeded", "larger", "precision"};

Task task(const std::string& constants = "N = 1024\nbatch_size = 16\n") {
  Task out;
  out.id = "t";
  out.source = constants + "class Model: pass\n";
  return out;
}

std::vector<std::string> names(const std::vector<CaseSpec>& cases) {
  std::vector<std::string> out;
  for (const CaseSpec& spec : cases) out.push_back(spec.name);
  return out;
}

const CaseSpec& find(const std::vector<CaseSpec>& cases, const std::string& name) {
  for (const CaseSpec& spec : cases) {
    if (spec.name == name) return spec;
  }
  throw std::out_of_range(name);
}

TEST(MultiInput, TheFiveCases) {
  Task one = task();
  one.tiny = {{"N", 4}};
  auto cases = MultiInput(2, {kFive, 0}).cases(one);
  EXPECT_THAT(names(cases),
              ElementsAre("full", "tiny", "doubled", "reseeded", "larger", "larger_in_ratio", "precision"));
  const CaseSpec &full = cases[0], &doubled = cases[2], &reseeded = cases[3], &larger = cases[4], &even = cases[5],
                 &precision = cases[6];
  EXPECT_EQ(full.input_seeds, 2);
  EXPECT_FALSE(full.additional);
  EXPECT_FALSE(cases[1].additional);
  EXPECT_EQ(doubled.values, "doubled");
  EXPECT_EQ(doubled.recorded_as(), "full");
  EXPECT_EQ(reseeded.values, "");
  EXPECT_EQ(reseeded.recorded_as(), "full");
  EXPECT_EQ(larger.recorded_as(), "larger");
  EXPECT_EQ(larger.constants, (std::map<std::string, int64_t>{{"N", 1537}, {"batch_size", 27}}));
  EXPECT_EQ(even.constants, (std::map<std::string, int64_t>{{"N", 1536}, {"batch_size", 24}}));
  EXPECT_EQ(even.instead_of, "larger");
  EXPECT_TRUE(precision.other_precision);
  EXPECT_EQ(precision.recorded_as(), "precision");
  EXPECT_TRUE(precision.constants.empty());
  for (size_t i = 2; i < cases.size(); ++i) {
    EXPECT_TRUE(cases[i].additional) << cases[i].name;
    EXPECT_FALSE(cases[i].tiny) << cases[i].name;
    EXPECT_EQ(cases[i].input_seeds, 1) << cases[i].name;
    EXPECT_EQ(cases[i].not_possible, "") << cases[i].name;
  }
}

TEST(MultiInput, OtherDistributionsAreTriedAtTinySizesWhereThereAreAny) {
  MultiInput::Config config;
  Task one = task();
  for (bool tiny : {false, true}) {
    if (tiny) one.tiny = {{"N", 4}};
    auto cases = MultiInput(2, config).cases(one);
    for (const char* name : {"uniform", "small", "large", "magnitudes"}) {
      EXPECT_EQ(find(cases, name).recorded_as(), tiny ? "tiny" : "full") << name;
      EXPECT_EQ(find(cases, name).values, name);
    }
    for (const char* name : {"doubled", "reseeded"}) EXPECT_EQ(find(cases, name).recorded_as(), "full") << name;
    EXPECT_TRUE(find(cases, "larger").other_scalars);
    EXPECT_FALSE(find(cases, "full").other_scalars);
  }
}

TEST(MultiInput, ThePackagedSizesGoBeforeDerivedOnes) {
  Task one = task();
  one.larger = {{"N", 1000}};
  EXPECT_EQ(find(MultiInput(2, {kFive, 0}).cases(one), "larger_in_ratio").constants, one.larger);
}

TEST(MultiInput, ATaskWithoutSizesHasNoLargerCaseAndSaysSo) {
  auto cases = MultiInput(2, {kFive, 0}).cases(task(""));
  EXPECT_NE(find(cases, "larger").not_possible, "");
  EXPECT_EQ(find(cases, "precision").not_possible, "");
}

TEST(MultiInput, CountTakesTheFirstOnes) {
  EXPECT_THAT(names(MultiInput(2, {kFive, 1}).cases(task())), ElementsAre("full"));
  EXPECT_THAT(names(MultiInput(2, {kFive, 3}).cases(task())), ElementsAre("full", "doubled", "reseeded"));
}

// Every list that may be configured keeps what the verifier requires of a source.
TEST(MultiInput, AnySelectionKeepsTheContract) {
  auto known = known_cases();
  EXPECT_EQ(known.size(), 5 + kValueTransforms.size() - 1);
  for (unsigned mask = 0; mask < 1u << (known.size() - 1); mask += 37) {
    std::vector<std::string> list = {"original"};
    for (size_t i = 1; i < known.size(); ++i) {
      if (mask >> (i - 1) & 1) list.push_back(known[i]);
    }
    auto cases = MultiInput(3, {list, 0}).cases(task());
    bool has_larger = std::count(list.begin(), list.end(), "larger") > 0;  // And its stand-in.
    ASSERT_EQ(cases.size(), list.size() + has_larger);
    EXPECT_FALSE(cases[0].additional || cases[0].tiny);
    for (const CaseSpec& spec : cases) EXPECT_FALSE(find(cases, spec.recorded_as()).additional && !spec.trace.empty());
  }
}

TEST(MultiInput, ListsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(MultiInput(2, {{}, 0}), Error);
  EXPECT_THROW(MultiInput(2, {{"doubled"}, 0}), Error);
  EXPECT_THROW(MultiInput(2, {{"original", "tripled"}, 0}), Error);
  EXPECT_THROW(MultiInput(2, {{"original", "larger", "larger"}, 0}), Error);
  EXPECT_THROW(MultiInput(2, {kFive, 6}), Error);
  EXPECT_THROW(MultiInput(2, {kFive, -1}), Error);
}

// --- Through the stages, over scripted workers.

Verdict verify(const FakePool::Answer& answer, const std::vector<std::string>& list = kFive, VerifyConfig config = {},
               const JudgeReply& judge = honest_judge) {
  VerifySeams seams;
  seams.cases = std::make_shared<MultiInput>(2, MultiInput::Config{list, 0});
  auto verifier = verifier_over(answer, config, seams, judge);
  Candidate one;
  one.id = "c";
  one.task = task();
  one.text = "x = 1\n";
  one.is_code = true;
  return verifier->verify({&one, 1})[0];
}

std::map<std::string, std::string> outcomes(const Verdict& verdict) {
  std::map<std::string, std::string> out;
  for (const CaseResult& result : verdict.cases)
    out[result.name] = result.outcome() ? to_string(*result.outcome()) : "-";
  return out;
}

using Outcomes = std::map<std::string, std::string>;

TEST(MultiInputVerdict, AnHonestCandidatePassesAllFive) {
  std::map<std::string, std::set<int64_t>> inputs;  // Their seeds, by case and values.
  std::set<std::string> recorded, of_the_reference;
  auto worker = [&](const Job& job, const std::string& nonce) {
    for (const Json& spec : job.kind == "record" ? job.args["cases"] : Json::array()) {
      auto name = spec["name"].get<std::string>();
      (kind_of(job) == "record" ? recorded : of_the_reference).insert(name);
      if (name == "precision") {
        EXPECT_EQ(spec["dtype"], kind_of(job) == "record" ? "float32" : "other")
            << "the dtype of the reference's inputs";
      }
    }
    return honest_answer(job, nonce);
  };
  Verdict verdict = verify(worker, kFive, {}, [&](const Json& question, const std::string& payload, auto* tensors) {
    if (question["do"] == "inputs") {
      inputs[cat(question["case"].get<std::string>(), "|", question["values"].get<std::string>())].insert(
          question["input_seed"].get<int64_t>());
      EXPECT_EQ(question["additional"],
                question["case"] != "full" || question["values"] != "" || inputs["full|"].size() == 3);
    }
    return honest_judge(question, payload, tensors);
  });
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  EXPECT_EQ(
      outcomes(verdict),
      (Outcomes{
          {"full", "pass"}, {"doubled", "pass"}, {"reseeded", "pass"}, {"larger", "pass"}, {"precision", "pass"}}));
  for (const CaseResult& result : verdict.cases) EXPECT_TRUE(result.worst && *result.worst <= 1) << result.name;
  EXPECT_EQ(recorded, (std::set<std::string>{"full", "larger", "precision"}));
  EXPECT_EQ(of_the_reference, (std::set<std::string>{"full", "larger", "larger_in_ratio", "precision"}));
  std::map<std::string, size_t> counts;
  for (const auto& [what, seeds] : inputs) counts[what] = seeds.size();
  EXPECT_EQ(counts, (std::map<std::string, size_t>{{"full|", 3},  // Two seeds, and one more.
                                                   {"full|doubled", 1},
                                                   {"larger|", 1},
                                                   {"precision|", 1}}));
  Verdict again = verdict_from_json(Json::parse(to_json(verdict).dump()), "here");
  EXPECT_EQ(to_json(again), to_json(verdict));
}

TEST(MultiInputVerdict, WhatTheReferenceCannotDoIsSkippedAndFailsNobody) {
  Verdict verdict = verify([](const Job& job, const std::string& nonce) {
    if (kind_of(job) == "reference") {
      return reference_answer(nonce, job, {"larger", "larger_in_ratio", "precision"});
    }
    if (job.kind == "record") {
      EXPECT_EQ(job.args["cases"].size(), 1u);
    }
    return honest_answer(job, nonce);
  });
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  EXPECT_EQ(outcomes(verdict)["larger"], "-");
  EXPECT_EQ(outcomes(verdict)["precision"], "-");
  EXPECT_EQ(outcomes(verdict)["doubled"], "pass");
  Json json = to_json(verdict);
  EXPECT_EQ(json["cases"][3]["outcome"], "skipped");
  EXPECT_NE(json["cases"][3]["message"], "");
  EXPECT_EQ(to_json(verdict_from_json(json, "here")), json);
}

TEST(MultiInputVerdict, WrongOnlyAtOtherSizesIsWrong) {
  const float wrong[4] = {2, -4, 6, 7};
  Verdict verdict = verify([&](const Job& job, const std::string& nonce) {
    bool bad = job.kind == "interpret" && job.args["case"] == "larger" && job.args["launches"];
    return bad ? interpret_answer(nonce, wrong) : honest_answer(job, nonce);
  });
  EXPECT_EQ(verdict.outcome, Outcome::kWrongOutput);
  EXPECT_EQ(verdict.stopped_at, Stage::kFullRun);
  EXPECT_NE(verdict.reason().find("case larger"), std::string::npos) << verdict.reason();
  EXPECT_EQ(outcomes(verdict)["larger"], "wrong_output");
  EXPECT_EQ(outcomes(verdict)["precision"], "pass") << "the rest is told as well";
}

// A child that does all the runs it is given; `mend` changes what it says of them.
JobAnswer together(const Json& args, const std::string& nonce, const std::function<void(Json* header)>& mend,
                   const char* wrong_in = "") {
  const float right[4] = {2, -4, 6, 8}, wrong[4] = {2, -4, 6, 7};
  auto output = [&](const Json& run) { return bytes_of(run["case"] == wrong_in || !run["launches"] ? wrong : right); };
  const Json one = {{"outputs", ref("float32", 0, 16)},
                    {"inputs_after", Json::array({nullptr})},
                    {"kept", Json::array()},
                    {"programs", 1},
                    {"guards_broken", Json::array()}};
  Json header = one;
  std::string area = output(args);
  for (const Json& run : args["others"]) {
    header["others"].push_back({{"answer", one}, {"tensors", {{"offset", area.size()}, {"nbytes", 16}}}});
    area += output(run);
  }
  header.update({{"nonce", nonce}, {"ok", true}});
  mend(&header);
  return exited(header, area);
}

TEST(MultiInputVerdict, RunsThatShareAChildAreJudgedEachForItself) {
  int children = 0, shared = 0;
  auto with = [&](const std::function<void(Json*)>& mend, const char* wrong_in = "") {
    children = shared = 0;
    return verify([&, mend, wrong_in](const Job& job, const std::string& nonce) {
      children += job.kind == "interpret";
      if (job.kind != "interpret" || !job.args.contains("others")) return honest_answer(job, nonce);
      ++shared;
      EXPECT_EQ(job.args["others"].size(), shared == 1 ? 1u : 4u);  // Without launches; all that comes after the first.
      return together(job.args, nonce, mend, wrong_in);
    });
  };
  Verdict all = with([](Json*) {});
  EXPECT_TRUE(all.correct()) << all.reason();
  EXPECT_EQ(shared, 2);
  EXPECT_EQ(children, 3);
  Verdict wrong = with([](Json*) {}, "precision");
  EXPECT_EQ(outcomes(wrong), (Outcomes{{"full", "pass"},
                                       {"doubled", "pass"},
                                       {"reseeded", "pass"},
                                       {"larger", "pass"},
                                       {"precision", "wrong_output"}}));
  EXPECT_EQ(children, 3);
  Verdict fewer = with([&](Json* header) {
    if (shared == 2) (*header)["others"].erase(1);
  });  // It failed in the third.
  EXPECT_TRUE(fewer.correct()) << fewer.reason();
  // Nothing of what makes no sense is believed, and each is run alone.
  const Json nonsense[] = {{{"offset", 16}, {"nbytes", 1000}},
                           {{"offset", -16}, {"nbytes", 16}},
                           {{"offset", 1 << 20}, {"nbytes", 0}},
                           {{"offset", 0}},
                           3,
                           {{"offset", 0}, {"nbytes", 16}, {"shape", 2}}};
  for (const Json& place : nonsense) {
    Verdict verdict = with([&](Json* header) { (*header)["others"].back()["tensors"] = place; });
    EXPECT_TRUE(verdict.correct()) << place << ": " << verdict.reason();
    EXPECT_EQ(children, 3 + 2 + 5) << place;
  }
  for (const Json& others : {Json(3), Json::array({1, 2, 3, 4}), Json::array({nullptr}),
                             Json::array({{{"answer", 1}, {"tensors", nonsense[0]}}})}) {
    EXPECT_TRUE(with([&](Json* header) { (*header)["others"] = others; }).correct()) << others;
    EXPECT_EQ(children, 3 + 2 + 5) << others;
  }
  int lost = 0;
  Verdict verdict = verify([&](const Job& job, const std::string& nonce) {
    bool is = job.kind == "interpret" && job.args.contains("others");
    lost += is;
    return is ? JobAnswer() : honest_answer(job, nonce);
  });
  EXPECT_TRUE(verdict.correct()) << "what kills the child that they share is nobody's until it kills one of its own";
  EXPECT_EQ(lost, 2);
}

TEST(MultiInputVerdict, CasesThatCannotBeRecordedOrCompiledFailInFullRun) {
  Verdict verdict = verify([](const Job& job, const std::string& nonce) {
    return kind_of(job) == "record" ? record_answer(nonce, job, "larger") : honest_answer(job, nonce);
  });
  EXPECT_EQ(verdict.outcome, Outcome::kRuntimeError);
  EXPECT_EQ(verdict.stopped_at, Stage::kFullRun);
  EXPECT_TRUE(verdict.compiled());
  EXPECT_EQ(outcomes(verdict)["larger"], "runtime_error");
  EXPECT_EQ(outcomes(verdict)["precision"], "pass");
}

TEST(MultiInputVerdict, NobodyHasToBeWrittenForAnotherPrecision) {
  Verdict verdict = verify([](const Job& job, const std::string& nonce) {
    return kind_of(job) == "record" ? record_answer(nonce, job, "precision") : honest_answer(job, nonce);
  });
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  EXPECT_EQ(outcomes(verdict)["precision"], "-");
}

// Sizes that have to keep a ratio: the task cannot do the uneven ones.
TEST(MultiInputVerdict, LargerFallsBackToSizesInRatio) {
  Verdict verdict = verify([](const Job& job, const std::string& nonce) {
    return kind_of(job) == "reference" ? reference_answer(nonce, job, {"larger"}) : honest_answer(job, nonce);
  });
  EXPECT_TRUE(verdict.correct()) << verdict.reason();
  EXPECT_EQ(outcomes(verdict)["larger"], "-");
  EXPECT_EQ(outcomes(verdict)["larger_in_ratio"], "pass");
}

TEST(MultiInputVerdict, AFailureThatNobodyAllowedIsTampering) {
  Verdict verdict = verify([](const Job& job, const std::string& nonce) {
    return kind_of(job) == "record" ? record_answer(nonce, job, "full") : honest_answer(job, nonce);
  });
  EXPECT_EQ(verdict.outcome, Outcome::kTampered);
}

TEST(MultiInputVerdict, TheOriginalDecidesFirst) {
  const float wrong[4] = {2, -4, 6, 7};
  VerifyConfig config;
  config.skip_stages = {Stage::kTinyRun};
  Verdict verdict = verify(
      [&](const Job& job, const std::string& nonce) {
        return job.kind == "interpret" ? interpret_answer(nonce, wrong) : honest_answer(job, nonce);
      },
      kFive, config);
  EXPECT_EQ(verdict.outcome, Outcome::kWrongOutput);
  EXPECT_EQ(outcomes(verdict), (Outcomes{{"full", "wrong_output"}}));
}

TEST(MultiInputVerdict, OnlyTheTasksOwnSizesAreTooLargeForTheInterpreter) {
  for (int64_t n : {32, 33}) {  // Eight times the original's four numbers, and more.
    Verdict verdict = verify([&](const Job& job, const std::string& nonce) {
      if (kind_of(job) == "reference") return reference_answer(nonce, job, {}, n);
      bool fails = job.kind == "record" && n == 32;  // Skipped cases are not recorded.
      return fails ? record_answer(nonce, job, "larger") : honest_answer(job, nonce);
    });
    SCOPED_TRACE(verdict.reason());
    EXPECT_EQ(outcomes(verdict)["larger"], n == 32 ? "runtime_error" : "-");
    EXPECT_EQ(verdict.correct(), n == 33);
  }
}

TEST(MultiInputVerdict, ALostWorkerInAnyCaseIsAHarnessFault) {
  for (const char* name : {"full", "larger", "precision"}) {
    Verdict verdict = verify([&](const Job& job, const std::string& nonce) {
      bool lost = job.kind == "interpret" && job.args["case"] == name;
      return lost ? JobAnswer() : honest_answer(job, nonce);
    });
    EXPECT_EQ(verdict.outcome, Outcome::kHarnessFault) << name;
  }
}

}  // namespace
}  // namespace tritonrl::multi_input::multi_input_test
