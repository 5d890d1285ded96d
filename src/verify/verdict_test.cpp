// SPDX-License-Identifier: Apache-2.0
// Verdicts: names, round trips, and what "passed a stage" means.
#include "verify/verdict.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace tritonrl::verdict_test {
namespace {

Verdict sample() {
  Verdict verdict;
  verdict.candidate_id = "c1";
  verdict.task_id = "t1";
  verdict.level = 2;
  verdict.outcome = Outcome::kWrongOutput;
  verdict.stopped_at = Stage::kTinyRun;
  verdict.stages = {{Stage::kExtract, 0.001, {}},
                    {Stage::kSyntax, 0.002, {}},
                    {Stage::kCompile, 0.25, {}, 0.125},
                    {Stage::kTinyRun, 0.1, {Rule::kRace, "programs race"}}};
  verdict.cases = {{"full", {Rule::kRace, "programs race"}, 0.5, {}}, {"larger", {}, {}, "there is no such case"}};
  verdict.path = VerifyPath::kInterpreter;
  verdict.speedup = 1.25;
  verdict.delegated_ops = {"aten.relu.default"};
  verdict.triton_launches = 3;
  verdict.sandbox_missing = {"seccomp"};
  verdict.code = "import torch\n";
  return verdict;
}

TEST(Verdict, NamesGoBothWays) {
  for (int i = 0; i < kStageCount; ++i)
    EXPECT_EQ(named<Stage>(to_string(static_cast<Stage>(i))), static_cast<Stage>(i));
  for (int i = 0; i < kOutcomeCount; ++i) {
    EXPECT_EQ(named<Outcome>(to_string(static_cast<Outcome>(i))), static_cast<Outcome>(i));
  }
  EXPECT_STREQ(to_string(Outcome::kHarnessFault), "harness_fault");
  EXPECT_STREQ(to_string(Outcome::kOutOfMemory), "out_of_memory");
  EXPECT_STREQ(to_string(Stage::kTime), "time");
  EXPECT_FALSE(named<Stage>("passed"));
  EXPECT_FALSE(named<Outcome>(""));
}

TEST(Verdict, RoundTrip) {
  Verdict verdict = sample();
  verdict.timing = TimingResult{2e-3, 1e-3, 2.0, 2.0, 0.01, 20, 1.98, 2.02, 3, 1980, 4096, 0};
  verdict.triton_share = 0.75;
  verdict.triton_compile_s = 0.125;
  verdict.policies = {{"strict", "library calls do part of the work: aten.mm.default"}, {"mixed", ""}};
  Json json = to_json(verdict);
  EXPECT_EQ(to_json(verdict_from_json(json, "here")), json);
  EXPECT_EQ(json["stages"][2]["own_s"], 0.125);
  EXPECT_FALSE(json["stages"][1].contains("own_s"));
  EXPECT_EQ(json["timing"]["interval"], Json({1.98, 2.02}));
  EXPECT_EQ(json["timing"]["candidate_bytes"], 0);
  verdict.timing = TimingResult{};  // What was not measured is left out.
  EXPECT_EQ(to_json(verdict_from_json(to_json(verdict), "here")), to_json(verdict));
  EXPECT_FALSE(to_json(verdict)["timing"].contains("interval"));
  EXPECT_FALSE(to_json(verdict)["timing"].contains("clock_mhz"));
  EXPECT_FALSE(to_json(verdict)["timing"].contains("reference_bytes"));
  EXPECT_EQ(json["correct"], false);
  EXPECT_EQ(json["reason"], "programs race");
  EXPECT_EQ(json["stages"][3]["message"], "programs race");
  EXPECT_EQ(json["stages"][3]["finding"], Json({{"rule", "race"}, {"message", "programs race"}}));
  EXPECT_FALSE(json["stages"][0].contains("finding"));
  EXPECT_EQ(json["cases"][1]["outcome"], "skipped");
  EXPECT_EQ(json["triton_compile_s"], 0.125);
  verdict.speedup.reset();
  EXPECT_TRUE(to_json(verdict)["speedup"].is_null());
  EXPECT_FALSE(verdict_from_json(to_json(verdict), "here").speedup.has_value());
}

TEST(Verdict, PassedStages) {
  Verdict verdict = sample();
  EXPECT_TRUE(verdict.valid());
  EXPECT_TRUE(verdict.compiled());
  EXPECT_FALSE(verdict.passed(Stage::kTinyRun));
  EXPECT_FALSE(verdict.passed(Stage::kFullRun));
  EXPECT_FALSE(verdict.correct());
  verdict.stages.erase(verdict.stages.begin() + 1);  // Syntax switched off: going beyond it counts.
  EXPECT_TRUE(verdict.valid());
  Verdict fresh;
  EXPECT_TRUE(fresh.is_harness_fault());
  EXPECT_FALSE(fresh.valid());
}

TEST(Verdict, RefusesWhatItDoesNotKnow) {
  for (const char* key : {"id", "outcome", "stages", "path", "code", "delegated_ops"}) {
    Json json = to_json(sample());
    json.erase(key);
    EXPECT_THROW(verdict_from_json(json, "v.jsonl:3"), Error) << key;
  }
  Json json = to_json(sample());
  json["outcome"] = "passed";
  try {
    verdict_from_json(json, "v.jsonl:3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "v.jsonl:3");
    EXPECT_NE(error.message().find("passed"), std::string::npos);
  }
  json = to_json(sample());
  json["stages"][0]["stage"] = "parse";
  EXPECT_THROW(verdict_from_json(json, "x"), Error);
  EXPECT_THROW(verdict_from_json(Json::array(), "x"), Error);
  const std::function<void(Json&)> spoilt[] = {
      [](Json& j) { j["stages"][3].erase("finding"); },
      [](Json& j) { j["stages"][3]["finding"] = "race"; },
      [](Json& j) { j["stages"][3]["finding"]["rule"] = "no_such_rule"; },
      [](Json& j) { j["stages"][3]["finding"].erase("rule"); },
      [](Json& j) { j["stages"][3]["finding"]["rule"] = "deadline"; },  // Which is no wrong output.
      [](Json& j) { j["stages"][3]["finding"]["lines"] = 3; },
      [](Json& j) { j["stages"][3]["finding"]["line"] = "3"; },
      [](Json& j) {
        j["stages"][3]["finding"]["index"] = {1, "2"};
      },
      [](Json& j) { j["stages"][3]["finding"]["sizes"] = {1}; },
      [](Json& j) {
        j["stages"][3]["finding"]["secret"] = {{"seed", 1}};
      },
      [](Json& j) {
        j["stages"][3]["finding"]["secret"] = {{"error", "large"}};
      },
      [](Json& j) { j["stages"][3]["outcome"] = "pass"; },
      [](Json& j) { j["cases"][0]["finding"]["rule"] = "no_such_rule"; },
      [](Json& j) { j["outcome"] = "not_finite"; },
  };
  for (const auto& spoil : spoilt) {
    json = to_json(sample());
    spoil(json);
    EXPECT_THROW(verdict_from_json(json, "x"), Error) << json["stages"][3] << json["cases"];
  }
}

}  // namespace
}  // namespace tritonrl::verdict_test
