// SPDX-License-Identifier: Apache-2.0
// Findings: the table of rules and its page in the docs, what people are told, text from outside, and JSON both ways.
// What the policy is told is feedback_test.cpp's.
#include "verify/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "support/made_up_finding.h"
#include "verify/sandbox/blob.h"

namespace tritonrl::finding_test {
namespace {

TEST(Rules, NamesGoBothWaysAndDetectorsAreForTheCheats) {
  std::set<std::string> names;
  for (Rule rule : all_rules()) {
    EXPECT_TRUE(names.insert(name_of(rule)).second) << name_of(rule);
    EXPECT_EQ(named<Rule>(name_of(rule)), rule);
    bool how_it_tried = outcome_of(rule) == Outcome::kRuleBreak || outcome_of(rule) == Outcome::kTampered;
    EXPECT_EQ(std::string(detector_of(rule)).empty(), !how_it_tried) << name_of(rule);
  }
  EXPECT_FALSE(named<Rule>("no_such_rule"));
  for (int i = 0; i < kOutcomeCount; ++i) {
    auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(made_up_finding(outcome).outcome(), outcome) << "no rule for it";
  }
}

// docs/verdicts.md has a row for each rule, as the table has it, and no others.
TEST(Rules, StandInTheDocs) {
  std::string page = read_file(source_dir() + "/docs/verdicts.md");
  size_t rows = 0;
  for (const std::string& line : split(page.substr(page.find("| rule |")), '\n')) {
    if (line.empty()) break;
    ++rows;
  }
  EXPECT_EQ(rows, all_rules().size() - 1 + 2) << "a head, a line, and a row for every rule but the pass";
  for (Rule rule : all_rules()) {
    if (rule == Rule::kPass) continue;
    std::string detector = *detector_of(rule) ? cat("`", detector_of(rule), "`") : "";
    std::string row = cat("| `", name_of(rule), "` | `", to_string(outcome_of(rule)), "` | ", detector,
                          detector.empty() ? "| " : " | ", says(rule), " |\n");
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(CleanMessage, TakesPathsAndBadBytesOut) {
  EXPECT_EQ(clean_message("in /home/me/project/candidate.py, line 3"), "in candidate.py, line 3");
  EXPECT_EQ(clean_message("File \"/tmp/a/b.py\""), "File \"b.py\"");
  EXPECT_EQ(clean_message("x / y, and/or a // b http://host/path"), "x / y, and/or a // b http://host/path");
  EXPECT_EQ(clean_message("\xff"), "\xEF\xBF\xBD");
  EXPECT_LE(clean_message(std::string(100000, 'x')).size(), 2100u);
  EXPECT_EQ(clean_message("\x1b]0;owned\x07 \xE2\x80\xAE"
                          "ssap"),
            "[U+001B]]0;owned[U+0007] [U+202E]ssap");
  EXPECT_EQ(clean_message(clean_message("\x1b")), "[U+001B]");
}

TEST(Finding, PeopleAreToldAll) {
  EXPECT_EQ(human_text({}), "");
  EXPECT_EQ(human_text(Rule::kNoLaunch), "no Triton kernel is launched");
  Finding off = wrong_element(Rule::kElements, {"output", 390, 1200, {0, 1}, 0.001898857, 0.001892629, 5.791895e-06});
  off.told.sizes = {{"M", 3}};
  EXPECT_EQ(human_text(off),
            "output differs from the reference in 390 of 1200 elements; first at (0, 1): expected 0.001898857, got "
            "0.001892629 (error 6.228e-06, allowed 5.791895e-06) (with M = 3)");
  EXPECT_EQ(human_text(wrong_element(Rule::kNotFinite, {"o", 1, 2, {1}, 3, NAN, 1})),
            "o differs from the reference in 1 of 2 elements; first at (1,): expected 3, got nan");
  EXPECT_EQ(human_text(imprecise("o", Dtype::kFloat32, 4.5e-05, 3e-05)),
            "o is too imprecise for float32: root mean square error 4.5e-05, allowed 3e-05");
  EXPECT_EQ(human_text(other_scalar("o[1]", "a", nullptr)), "o[1] is \"a\", expected null");
  EXPECT_EQ(human_text(with_secret(Rule::kDeadline, "not finished after 3 s")), "not finished after 3 s");
  EXPECT_EQ(human_text(with_secret({Rule::kProcessEnded, "exit code 1"}, "it said: x")), "exit code 1; it said: x");
  EXPECT_EQ(human_text({Rule::kForgedResult, "it lacks a case"}), "it lacks a case");
  Finding failed(Rule::kKernelFailed, "running: illegal address");
  failed.told.kernel = "k";
  EXPECT_EQ(human_text(failed), "kernel k: running: illegal address");
  failed.told.line = 7;
  failed.told.case_name = "larger";
  EXPECT_EQ(human_text(failed), "case larger: kernel k, line 7: running: illegal address");
}

TEST(Finding, WordsAboutForgeriesAndOurFaultsAreSecret) {
  for (Rule rule : all_rules()) {
    Finding finding(rule, "words");
    bool kept = finding.outcome() == Outcome::kTampered || finding.outcome() == Outcome::kHarnessFault;
    EXPECT_EQ(finding.told.message.empty(), kept) << name_of(rule);
    EXPECT_EQ(finding.secret.detail.empty(), !kept) << name_of(rule);
  }
}

TEST(Finding, SaysErrorsInTwoDigits) {
  auto times = [](double error) {
    return wrong_element(Rule::kElements, {"o", 1, 1, {0}, 0, error, 1}).told.times_allowed;
  };
  EXPECT_DOUBLE_EQ(times(1.0449), 1.0);
  EXPECT_DOUBLE_EQ(times(9.94), 9.9);
  EXPECT_DOUBLE_EQ(times(9.96), 10);
  EXPECT_DOUBLE_EQ(times(99.4), 99);
  EXPECT_DOUBLE_EQ(times(123.4), 120);
  EXPECT_DOUBLE_EQ(times(1e9), kMostTimesAllowed);
  EXPECT_DOUBLE_EQ(imprecise("o", Dtype::kFloat32, NAN, 1).told.times_allowed, kMostTimesAllowed);
}

TEST(Finding, GoesThroughJsonAndBack) {
  Finding all(Rule::kElements, "a message");
  all.told.phase = "launch";
  all.told.kernel = "k";
  all.told.line = 3;
  all.told.name = "output['a']";
  all.told.number = 2;
  all.told.operations = {CleanText("aten.mm.default")};
  all.told.got = Form({2, 3});
  all.told.expected = Form(Dtype::kBfloat16);
  all.told.scalar = "3";
  all.told.wrong = 1;
  all.told.elements = 2;
  all.told.index = {0, 1};
  all.told.not_finite = "-inf";
  all.told.times_allowed = 1.2;
  all.told.case_name = "larger";
  all.told.sizes = {{"N", 7}};
  all.secret = {"1", "2", 0.5, 0.25, CleanText("detail")};
  std::vector<Finding> findings = {{},
                                   all,
                                   wrong_element(Rule::kElements, {"o", 1, 1, {0}, 1e308, -1e308, 1}),
                                   imprecise("o", Dtype::kFloat16, INFINITY, 1)};
  for (Rule rule : all_rules()) findings.emplace_back(rule, "\xff /home/me/x.py");
  for (const Finding& finding : findings) {
    Json json = Json::parse(to_json(finding).dump());
    EXPECT_EQ(to_json(finding_from_json(json, "here")), json);
    EXPECT_EQ(human_text(finding_from_json(json, "here")), human_text(finding));
  }
  EXPECT_EQ(to_json(all).size(), 19u) << "a member that this test does not know";
}

}  // namespace
}  // namespace tritonrl::finding_test
