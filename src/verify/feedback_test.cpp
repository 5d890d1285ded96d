// SPDX-License-Identifier: Apache-2.0
// The text for every outcome, word by word, and that none of them tells what the judge alone knows.
#include "verify/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "support/made_up_finding.h"
#include "verify/sandbox/blob.h"

namespace tritonrl::feedback_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kWhole = 4000;
const std::string kCode =
    "import triton\n\n@triton.jit\ndef add_kernel(x_ptr, n, BLOCK):\n    i = load(x_ptr)\n    "
    "store(i)\n\nrun(1\nlast()";

Verdict stopped(Stage stage, const Finding& finding) {
  Verdict verdict;
  verdict.outcome = finding.outcome();
  verdict.stopped_at = stage;
  verdict.stages = {{stage, 1.25, finding}};
  verdict.code = kCode;
  return verdict;
}

std::string told(Stage stage, const Finding& finding) {
  return feedback_text(public_part(stopped(stage, finding)), kWhole);
}

Finding at_line(Finding finding, int64_t line, const std::string& kernel = "") {
  finding.told.line = line;
  finding.told.kernel = kernel;
  return finding;
}

TEST(Feedback, EveryOutcomeHasItsText) {
  EXPECT_EQ(told(Stage::kExtract, Rule::kCodeNotClosed), "There is no code to run: the last code block is not closed.");
  EXPECT_EQ(told(Stage::kSyntax, at_line({Rule::kNotPython, "line 8, column 5: invalid syntax near \"run(1\""}, 8)),
            "The code is not valid Python: line 8, column 5: invalid syntax near \"run(1\"\n"
            "  7 | \n> 8 | run(1\n  9 | last()");
  Finding calls = Rule::kLibraryCalls;
  calls.told.operations = {CleanText("aten.mm.default"), CleanText("aten.relu.default")};
  EXPECT_EQ(
      told(Stage::kCompile, calls),
      "The code breaks a rule of the task: library calls do part of the work: aten.mm.default, aten.relu.default");
  EXPECT_EQ(told(Stage::kCompile, at_line({Rule::kKernelName,
                                           "candidate.py:21 in forward: add_kernel[(4,)](x)\na kernel may not use xx: "
                                           "it is not defined"},
                                          5, "add_kernel")),
            "An error came up while importing it, constructing ModelNew or compiling its kernels:\n"
            "kernel add_kernel, line 5:\n"
            "candidate.py:21 in forward: add_kernel[(4,)](x)\n"
            "a kernel may not use xx: it is not defined\n"
            "  4 | def add_kernel(x_ptr, n, BLOCK):\n> 5 |     i = load(x_ptr)\n  6 |     store(i)");
  EXPECT_EQ(told(Stage::kCompile, {Rule::kForwardFailed, "candidate.py:8 in forward: f()\nTypeError: no"}),
            "An error came up in forward():\ncandidate.py:8 in forward: f()\nTypeError: no");
  EXPECT_EQ(told(Stage::kTinyRun, {Rule::kMemoryFault, "MemoryFault: illegal memory access"}),
            "An error came up while running it on small inputs:\nMemoryFault: illegal memory access");
  EXPECT_EQ(told(Stage::kFullRun, with_secret(Rule::kDeadline, "not finished after 30.2 s")),
            "The time limit passed while running it on the inputs of the task.");
  EXPECT_EQ(told(Stage::kCompile, {Rule::kOutOfMemory, "MemoryError:"}),
            "The memory limit was reached while importing it, constructing ModelNew or compiling its kernels: "
            "MemoryError:");
  EXPECT_EQ(told(Stage::kCompile, {Rule::kForgedResult, "the result does not carry its job's mark"}),
            "The code was rejected: it does something else than compute the result.");
  EXPECT_EQ(told(Stage::kCompile, {Rule::kNotRecordable, "a tensor's value is read"}),
            "The code cannot be judged here: a tensor's value is read");
}

TEST(Feedback, AWrongOutputIsDescribedWithoutItsValues) {
  auto wrong = [](const Finding& finding) {
    std::string said = told(Stage::kTinyRun, finding);
    const std::string head = "The result is wrong, found by running it on small inputs: ";
    EXPECT_EQ(said.rfind(head, 0), 0u) << said;
    return said.substr(std::min(head.size(), said.size()));
  };
  Finding off = wrong_element(Rule::kElements, {"output", 390, 1200, {0, 1}, 0.001898857, 0.001892629, 5.791895e-06});
  off.told.sizes = {{"M", 3}, {"N", 9}};
  EXPECT_EQ(wrong(off),
            "output differs from the reference in 390 of 1200 elements; first at (0, 1): the error there is 1.1 times "
            "what is allowed (with M = 3, N = 9)");
  Finding in_a_case = wrong_element(Rule::kElements, {"output[0]", 3, 13, {0}, 0.0016, 0.0001, 1.221688e-05});
  in_a_case.told.case_name = "doubled";
  EXPECT_EQ(wrong(in_a_case),
            "case doubled: output[0] differs from the reference in 3 of 13 elements; first at (0,): the error there is "
            "120 times what is allowed");
  EXPECT_THAT(wrong(wrong_element(Rule::kElements, {"output", 13, 13, {0}, -2.5, 0, 1.2e-05})),
              HasSubstr("over 1000 times what is allowed"));
  EXPECT_EQ(wrong(wrong_element(Rule::kElements, {"output", 2, 6, {0, 1}, 17, 16})),
            "output differs from the reference in 2 of 6 elements; first at (0, 1): the value there is another");
  EXPECT_EQ(wrong(imprecise("output", Dtype::kFloat32, 4.5e-05, 3e-05)),
            "output is too imprecise for float32: the root mean square error is 1.5 times what is allowed");
  EXPECT_EQ(wrong(other_form(Rule::kShape, "output", Form({11, 1}), Form(std::vector<int64_t>{11}))),
            "output has shape (11, 1), expected (11,)");
  EXPECT_EQ(wrong(other_form(Rule::kDtype, "output", Form(Dtype::kFloat16), Form(Dtype::kFloat32))),
            "output has dtype float16, expected float32");
  EXPECT_EQ(wrong(other_form(Rule::kKind, "output", Form(Form::Kind::kTensor), Form(Form::Kind::kTuple))),
            "output is a tensor, expected a tuple");
  EXPECT_EQ(wrong(other_form(Rule::kItems, "output", Form::items(1), Form::items(2))),
            "output has 1 items, expected 2 items");
  EXPECT_EQ(wrong(other_scalar("output[1]", 3, 4)), "output[1] is 3, which is not what the reference gives");
  EXPECT_EQ(wrong(input_changed(0)), "input 0 is changed, which the reference does not do");
  EXPECT_EQ(wrong(at_line({Rule::kRace, "Race: programs race"}, 6, "add_kernel")),
            "kernel add_kernel, line 6: Race: programs race\n"
            "  5 |     i = load(x_ptr)\n> 6 |     store(i)\n  7 |");
}

TEST(Feedback, NanIsNamedAndTheExpectedValueIsNot) {
  EXPECT_EQ(told(Stage::kFullRun, wrong_element(Rule::kNotFinite, {"output", 1, 4000, {15, 249}, -0.0763, NAN, 1e-5})),
            "The result holds NaN or infinity where the reference has none, found by running it on the inputs of the "
            "task: output differs from the reference in 1 of 4000 elements; first at (15, 249): it is nan there");
}

// Every kind of finding that knows a secret, under names, texts and sizes that look like the words around values. Once
// those words were what hid the values: an output named as below made the whole message come through.
TEST(Feedback, NoSecretComesThroughWhateverThingsAreNamed) {
  const double expected = 0.1430651, got = 0.0785965, allowed = 0.0001189614;
  const std::string secrets[] = {"0.143", "1430651", "0.0785", "0.0644", "0.000118", "hidden"};
  const std::string names[] = {
      "output",
      "x: expected 1, got 2 (with ",
      "output['x: expected 1, got 2 (error 1, allowed 1) (with N = 4)']",
      ", expected float32",
      " items",
      " (with ",
      "; it said: ",
      "kernel k, line 3 of its text",
      "root mean square error 1, allowed 2",
      std::string(5000, 'n'),
      "a\nb\x01\xff",
  };
  for (const std::string& name : names) {
    std::vector<Finding> findings = {
        wrong_element(Rule::kElements, {name, 5, 9, {0, 0}, expected, got, allowed}),
        wrong_element(Rule::kElements, {name, 5, 9, {}, expected, got}),
        wrong_element(Rule::kNotFinite, {name, 5, 9, {0, 0}, expected, -INFINITY, allowed}),
        wrong_element(Rule::kElements, {name, 5, 9, {INT64_MAX, -1}, NAN, got, allowed}),
        wrong_element(Rule::kElements, {name, 5, 9, {1}, expected, got, 0}),
        imprecise(name, Dtype::kFloat16, expected, allowed),
        other_scalar(name, name, expected),
        other_scalar(name, 3, "hidden"),
        other_scalar(name, nullptr, Json({{"hidden", expected}})),
        other_form(Rule::kShape, name, Form({3, 4}), Form({4, 3})),
    };
    for (Rule rule : all_rules()) {  // And any rule at all with a detail.
      if (outcome_of(rule) == Outcome::kPass || outcome_of(rule) == Outcome::kHarnessFault) continue;
      Finding finding(rule, outcome_of(rule) == Outcome::kTampered ? "hidden" : name);
      finding.secret = {"0.1430651", "0.0785965", expected, allowed, CleanText("hidden")};
      findings.push_back(finding);
    }
    for (Finding& finding : findings) {
      finding.told.kernel = name;
      finding.told.case_name = name;
      finding.told.operations = {CleanText(name)};
      finding.told.sizes = {{name, 4}};
      for (Stage stage : {Stage::kCompile, Stage::kTinyRun, Stage::kTime}) {
        std::string said = feedback_text(public_part(stopped(stage, finding)), 1 << 20);
        for (const std::string& secret : secrets) EXPECT_THAT(said, Not(HasSubstr(secret))) << name_of(finding.rule());
        Finding read = finding_from_json(to_json(finding), "here");
        EXPECT_EQ(feedback_text(public_part(stopped(stage, read)), 1 << 20), said);
      }
    }
  }
}

// Of all that a verdict holds, what it is named after and how long it took is not for the policy.
TEST(Feedback, OnlyTheReasonTheCodeAndTheTimeAreUsed) {
  Verdict verdict = stopped(Stage::kCompile, Rule::kNoLaunch);
  std::string before = feedback_text(public_part(verdict), kWhole);
  verdict.candidate_id = "secret";
  verdict.task_failure = "secret";
  verdict.cases = {{"secret", {}, 0.5, "secret"}};
  verdict.stages[0].seconds = 99;
  verdict.sandbox_missing = {"secret"};
  EXPECT_EQ(feedback_text(public_part(verdict), kWhole), before);
}

TEST(Feedback, APassTellsTheSpeedup) {
  Verdict verdict;
  verdict.outcome = Outcome::kPass;
  verdict.stopped_at = Stage::kTime;
  EXPECT_EQ(feedback_text(public_part(verdict), kWhole), "The answer is correct. Its time was not measured.");
  TimingResult timing;
  timing.reference_s = 24.6e-6;
  timing.candidate_s = 12.3e-6;
  timing.ratio = timing.speedup = 2;
  verdict.timing = timing;
  EXPECT_EQ(feedback_text(public_part(verdict), kWhole),
            "The answer is correct. It takes 12.3 us, the reference 24.6 us: 2.00 times as fast.");
  verdict.timing->ratio_low = 1.951;
  verdict.timing->ratio_high = 2.049;
  verdict.triton_share = 0.75;
  EXPECT_EQ(feedback_text(public_part(verdict), kWhole),
            "The answer is correct. It takes 12.3 us, the reference 24.6 us: 2.00 times as fast (95 % interval 1.95 to "
            "2.05). 75 % of its time goes to Triton kernels.");
  verdict.triton_share.reset();
  verdict.timing->reference_s = 0.0041;
  verdict.timing->candidate_s = 0.004;
  verdict.timing->ratio = 1.025;
  verdict.timing->speedup = 1;
  verdict.timing->ratio_low = verdict.timing->ratio_high = 0;
  EXPECT_EQ(feedback_text(public_part(verdict), kWhole),
            "The answer is correct. It takes 4.00 ms, the reference 4.10 ms: 1.02 times as fast, which the noise of "
            "timing does not tell from equally fast.");
}

TEST(Feedback, HeadAndTailOfALongErrorStay) {
  EXPECT_EQ(clip_middle("0123456789abcdef", 16), "0123456789abcdef");
  EXPECT_EQ(clip_middle("0123456789abcdefghij", 16), "0123\n...\ndefghij");
  std::string umlauts;  // Two bytes each.
  for (int i = 0; i < 20; ++i) umlauts += "\u00e4";
  EXPECT_EQ(clip_middle(umlauts, 16), "\u00e4\u00e4\n...\n\u00e4\u00e4\u00e4");
  std::string said = feedback_text(
      public_part(stopped(Stage::kCompile, {Rule::kImportFailed, std::string(1900, 'x') + "\nNameError: N"})), 200);
  EXPECT_LE(said.size(), 200u);
  EXPECT_EQ(said.rfind("An error came up", 0), 0u);
  EXPECT_TRUE(said.ends_with("NameError: N"));
}

TEST(Feedback, TensorsAreCalledTensors) {
  EXPECT_EQ(told(Stage::kCompile, {Rule::kForwardFailed, "AttributeError: 'FakeTensor' object has no attribute 'C'"}),
            "An error came up in forward():\nAttributeError: 'Tensor' object has no attribute 'C'");
}

TEST(Feedback, LinesThatAreNotThereAreNotShown) {
  EXPECT_EQ(told(Stage::kSyntax, at_line({Rule::kNotPython, "line 99, column 1: invalid syntax"}, 99)),
            "The code is not valid Python: line 99, column 1: invalid syntax");
  EXPECT_EQ(told(Stage::kSyntax, {Rule::kNotPython, "the code holds NUL bytes"}),
            "The code is not valid Python: the code holds NUL bytes");
  EXPECT_THAT(told(Stage::kTinyRun, at_line({Rule::kRace, "Race"}, 0, "other")), Not(HasSubstr("|")));
}

}  // namespace
}  // namespace tritonrl::feedback_test
