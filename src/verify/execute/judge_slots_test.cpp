// SPDX-License-Identifier: Apache-2.0
// Judges of GPUs of several kinds.
#include "verify/execute/judge_slots.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/fake_judge.h"

namespace tritonrl::judge_slots_test {
namespace {

const TargetGpu kA100 = typical_gpu(80), kH100 = typical_gpu(90);

TEST(JudgeSlots, EachCandidateIsForOneKindOfGpu) {
  auto slots = fake_judge(nullptr, {kH100, kA100, kH100});
  std::vector<int64_t> next;
  for (int i = 0; i < 4; ++i) next.push_back(slots->next_target().arch);
  EXPECT_EQ(next, (std::vector<int64_t>{90, 80, 90, 90}));
  EXPECT_TRUE(slots->has(kA100));
  EXPECT_FALSE(slots->has(typical_gpu(89)));
  JudgeLease first = slots->acquire("", &kA100), second = slots->acquire("", &kH100), third = slots->acquire();
  EXPECT_EQ(first.info().device, "cuda:1");
  EXPECT_EQ(second.info().device, "cuda:0");
  EXPECT_EQ(third.info().device, "cuda:2");
  TargetGpu other = typical_gpu(89);
  EXPECT_THROW(slots->acquire("", &other), Error);
}

// What a neighbour's memory is in the way of is asked again when the neighbours rest.
TEST(JudgeSlots, WhoeverIsShortOfMemoryIsAskedAgainAlone) {
  auto asked = [](Json said, size_t beside) {
    std::vector<bool> alone;
    auto slots = fake_judge(
        [&](const Json& question, const std::string&, std::string*) {
          alone.push_back(question.value("alone", false));
          Json reply = alone.back() ? Json::object() : said;
          if (!reply.contains("finding")) reply["finding"] = to_json(Finding());
          return reply;
        },
        {kH100}, beside);
    Finding finding = slots->acquire().run({}).finding;
    EXPECT_TRUE(finding.passed() || (beside == 1 && finding.rule() == Rule::kVerifierMemory));
    return alone;
  };
  const Json fine = Json::object(), looser = {{"short_of_memory", true}};
  const Json fails = {{"finding", to_json(Finding(Rule::kVerifierFailed))}, {"short_of_memory", true}};
  EXPECT_EQ(asked(fine, 2), (std::vector<bool>{false}));
  EXPECT_EQ(asked(looser, 2), (std::vector<bool>{false, true}));
  EXPECT_EQ(asked(fails, 2), (std::vector<bool>{false, true}));
  EXPECT_EQ(asked(fails, 1), (std::vector<bool>{false})) << "it is alone";
}

TEST(JudgeSlots, TheProcessorIsOfEveryKind) {
  auto slots = fake_judge(nullptr);
  EXPECT_TRUE(slots->has(kA100));
  EXPECT_EQ(slots->acquire("", &kA100).info().device, "cpu");
}

TEST(JudgeSlots, GpusThatAreTooOldAreRefused) {
  TargetGpu old = kA100;
  old.arch = 75;
  try {
    fake_judge(nullptr, {old});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("compute capability 7.5"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tritonrl::judge_slots_test
