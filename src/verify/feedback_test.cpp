// SPDX-License-Identifier: Apache-2.0
// The text for every outcome, word by word, and that none of them tells what the judge alone knows.
#include "verify/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tritonrl::feedback_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kWhole = 4000;
const std::string kCode =
    "import triton\n\n@triton.jit\ndef add_kernel(x_ptr, n, BLOCK):\n    i = load(x_ptr)\n    "
    "store(i)\n\nrun(1\nlast()";

Verdict stopped(Stage stage, Outcome outcome, const std::string& message) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.stopped_at = stage;
  verdict.stages = {{stage, outcome, 1.25, message}};
  verdict.code = kCode;
  return verdict;
}

std::string told(Stage stage, Outcome outcome, const std::string& message) {
  return feedback_text(stopped(stage, outcome, message), kWhole);
}

TEST(Feedback, EveryOutcomeHasItsText) {
  EXPECT_EQ(told(Stage::kExtract, Outcome::kNoCode, "the last code block is not closed"),
            "There is no code to run: the last code block is not closed.");
  EXPECT_EQ(told(Stage::kSyntax, Outcome::kSyntaxError, "line 8, column 5: invalid syntax near \"run(1\""),
            "The code is not valid Python: line 8, column 5: invalid syntax near \"run(1\"\n"
            "  7 | \n> 8 | run(1\n  9 | last()");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kRuleBreak, "library calls do part of the work: aten.mm.default"),
            "The code breaks a rule of the task: library calls do part of the work: aten.mm.default");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kCompileError,
                 "candidate.py:21 in forward: add_kernel[(4,)](x)\nkernel add_kernel, line 2 of its text: a kernel may "
                 "not use xx: it is not defined"),
            "An error came up while importing it, constructing ModelNew or compiling its kernels:\n"
            "candidate.py:21 in forward: add_kernel[(4,)](x)\n"
            "kernel add_kernel, line 2 of its text: a kernel may not use xx: it is not defined\n"
            "  4 | def add_kernel(x_ptr, n, BLOCK):\n> 5 |     i = load(x_ptr)\n  6 |     store(i)");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kRuntimeError, "candidate.py:8 in forward: f()\nTypeError: no"),
            "An error came up in forward():\ncandidate.py:8 in forward: f()\nTypeError: no");
  EXPECT_EQ(told(Stage::kTinyRun, Outcome::kRuntimeError, "MemoryFault: illegal memory access"),
            "An error came up while running it on small inputs:\nMemoryFault: illegal memory access");
  EXPECT_EQ(told(Stage::kFullRun, Outcome::kTimeout, "not finished after 30.2 s"),
            "The time limit passed while running it on the inputs of the task.");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kOutOfMemory, "MemoryError:"),
            "The memory limit was reached while importing it, constructing ModelNew or compiling its kernels: "
            "MemoryError:");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kTampered, "the result does not carry its job's mark"),
            "The code was rejected: it does something else than compute the result.");
  EXPECT_EQ(told(Stage::kCompile, Outcome::kUnsupported, "a tensor's value is read"),
            "The code cannot be judged here: a tensor's value is read");
}

TEST(Feedback, AWrongOutputIsDescribedWithoutItsValues) {
  auto wrong = [](const std::string& message) {
    std::string said = told(Stage::kTinyRun, Outcome::kWrongOutput, message);
    const std::string head = "The result is wrong, found by running it on small inputs: ";
    EXPECT_EQ(said.rfind(head, 0), 0u) << said;
    return said.substr(std::min(head.size(), said.size()));
  };
  EXPECT_EQ(
      wrong("output differs from the reference in 390 of 1200 elements; first at (0, 1): expected 0.001898857, got "
            "0.001892629 (error 6.227694e-06, allowed 5.791895e-06) (with M = 3, N = 9)"),
      "output differs from the reference in 390 of 1200 elements; first at (0, 1): the error there is 1.1 times "
      "what is allowed (with M = 3, N = 9)");
  EXPECT_EQ(wrong("case doubled: output[0] differs from the reference in 3 of 13 elements; first at (0,): expected "
                  "-0.02629197, got 0.0263 (error 0.0015, allowed 1.221688e-05)"),
            "case doubled: output[0] differs from the reference in 3 of 13 elements; first at (0,): the error there is "
            "120 times what is allowed");
  EXPECT_THAT(
      wrong("output differs from the reference in 13 of 13 elements; first at (0,): expected -2.5, got 0 (error "
            "2.5, allowed 1.2e-05)"),
      HasSubstr("over 1000 times what is allowed"));
  EXPECT_EQ(wrong("output differs from the reference in 2 of 6 elements; first at (0, 1): expected 17, got 16"),
            "output differs from the reference in 2 of 6 elements; first at (0, 1): the value there is another");
  EXPECT_EQ(
      wrong("output is too imprecise for float32: root mean square error 4.5e-05, allowed 3e-05 (with N = 4)"),
      "output is too imprecise for float32: the root mean square error is 1.5 times what is allowed (with N = 4)");
  EXPECT_EQ(wrong("output has shape (11, 1), expected (11,)"), "output has shape (11, 1), expected (11,)");
  EXPECT_EQ(wrong("output has dtype float16, expected float32"), "output has dtype float16, expected float32");
  EXPECT_EQ(wrong("output is a tensor, expected a tuple"), "output is a tensor, expected a tuple");
  EXPECT_EQ(wrong("output has 1 items, expected 2"), "output has 1 items, expected 2");
  EXPECT_EQ(wrong("output[1] is 3, expected 4"), "output[1] is 3, which is not what the reference gives");
  EXPECT_EQ(wrong("output[1] is \" has 3 items\", expected 4 (with N = 4)"),
            "output[1] is \" has 3 items\", which is not what the reference gives (with N = 4)");
  EXPECT_EQ(wrong("input 0 is changed, which the reference does not do"),
            "input 0 is changed, which the reference does not do");
  EXPECT_EQ(wrong("kernel add_kernel, line 3 of its text\nRace: programs race"),
            "kernel add_kernel, line 3 of its text\nRace: programs race\n"
            "  5 |     i = load(x_ptr)\n> 6 |     store(i)\n  7 |");
}

TEST(Feedback, NanIsNamedAndTheExpectedValueIsNot) {
  EXPECT_EQ(told(Stage::kFullRun, Outcome::kNotFinite,
                 "output differs from the reference in 1 of 4000 elements; first at (15, 249): expected -0.07629811, "
                 "got nan"),
            "The result holds NaN or infinity where the reference has none, found by running it on the inputs of the "
            "task: output differs from the reference in 1 of 4000 elements; first at (15, 249): it is nan there");
}

// Whatever form a message takes: no number with a fraction comes through but the two digits of a ratio.
TEST(Feedback, NoExpectedValueNoSeedAndNoInputComesThrough) {
  const char* secret = "0.1430651";
  std::string place = "output differs from the reference in 5 of 9 elements; first at (0, 0)";
  const std::string messages[] = {
      cat(place, ": expected 0.1430651, got 0.0785965 (error 0.06446864, allowed 0.0001189614)"),
      cat(place, ": expected 0.1430651, got -inf"),
      cat(place, ": expected 0.1430651"),
      "output is 2.5, expected 0.1430651",
      "output is [0.1430651], expected [0.1430651]",
      "output is too imprecise for float16: root mean square error 0.1430651, allowed 0.1",
      "a form that nobody thought of: 0.1430651"};
  for (const std::string& message : messages) {
    for (Outcome outcome : {Outcome::kWrongOutput, Outcome::kNotFinite}) {
      std::string said = told(Stage::kFullRun, outcome, message);
      EXPECT_THAT(said, Not(HasSubstr(secret))) << message;
      EXPECT_THAT(said, Not(HasSubstr("0.0644"))) << message;
      EXPECT_THAT(said, Not(HasSubstr("0.0785"))) << message;
    }
  }
  std::string input = "the process ended with exit code 1 and without a result; it said: 0.1430651 1.5";
  EXPECT_EQ(
      told(Stage::kTinyRun, Outcome::kRuntimeError, input),
      "An error came up while running it on small inputs:\nthe process ended with exit code 1 and without a result");
  EXPECT_THAT(told(Stage::kCompile, Outcome::kRuntimeError, input),
              HasSubstr("it said"));  // No input has values there.
}

// Of all that a verdict holds, what it is named after and how long it took is not for the policy.
TEST(Feedback, OnlyTheReasonTheCodeAndTheTimeAreUsed) {
  Verdict verdict = stopped(Stage::kCompile, Outcome::kRuleBreak, "no Triton kernel is launched");
  std::string before = feedback_text(verdict, kWhole);
  verdict.candidate_id = "secret";
  verdict.task_failure = "secret";
  verdict.cases = {{"secret", Outcome::kPass, "secret", 0.5}};
  verdict.stages[0].seconds = 99;
  verdict.sandbox_missing = {"secret"};
  EXPECT_EQ(feedback_text(verdict, kWhole), before);
}

TEST(Feedback, APassTellsTheSpeedup) {
  Verdict verdict;
  verdict.outcome = Outcome::kPass;
  verdict.stopped_at = Stage::kTime;
  EXPECT_EQ(feedback_text(verdict, kWhole), "The answer is correct. Its time was not measured.");
  TimingResult timing;
  timing.reference_s = 24.6e-6;
  timing.candidate_s = 12.3e-6;
  timing.ratio = timing.speedup = 2;
  verdict.timing = timing;
  EXPECT_EQ(feedback_text(verdict, kWhole),
            "The answer is correct. It takes 12.3 us, the reference 24.6 us: 2.00 times as fast.");
  verdict.timing->ratio_low = 1.951;
  verdict.timing->ratio_high = 2.049;
  verdict.triton_share = 0.75;
  EXPECT_EQ(feedback_text(verdict, kWhole),
            "The answer is correct. It takes 12.3 us, the reference 24.6 us: 2.00 times as fast (95 % interval 1.95 to "
            "2.05). 75 % of its time goes to Triton kernels.");
  verdict.triton_share.reset();
  verdict.timing->reference_s = 0.0041;
  verdict.timing->candidate_s = 0.004;
  verdict.timing->ratio = 1.025;
  verdict.timing->speedup = 1;
  verdict.timing->ratio_low = verdict.timing->ratio_high = 0;
  EXPECT_EQ(feedback_text(verdict, kWhole),
            "The answer is correct. It takes 4.00 ms, the reference 4.10 ms: 1.02 times as fast, which the noise of "
            "timing does not tell from equally fast.");
}

TEST(Feedback, HeadAndTailOfALongErrorStay) {
  EXPECT_EQ(clip_middle("0123456789abcdef", 16), "0123456789abcdef");
  EXPECT_EQ(clip_middle("0123456789abcdefghij", 16), "0123\n...\ndefghij");
  std::string umlauts;  // Two bytes each.
  for (int i = 0; i < 20; ++i) umlauts += "\u00e4";
  EXPECT_EQ(clip_middle(umlauts, 16), "\u00e4\u00e4\n...\n\u00e4\u00e4\u00e4");
  std::string said =
      feedback_text(stopped(Stage::kCompile, Outcome::kCompileError, std::string(1900, 'x') + "\nNameError: N"), 200);
  EXPECT_LE(said.size(), 200u);
  EXPECT_EQ(said.rfind("An error came up", 0), 0u);
  EXPECT_TRUE(said.ends_with("NameError: N"));
}

TEST(Feedback, TensorsAreCalledTensors) {
  EXPECT_EQ(told(Stage::kCompile, Outcome::kRuntimeError, "AttributeError: 'FakeTensor' object has no attribute 'C'"),
            "An error came up in forward():\nAttributeError: 'Tensor' object has no attribute 'C'");
}

TEST(Feedback, LinesThatAreNotThereAreNotShown) {
  EXPECT_EQ(told(Stage::kSyntax, Outcome::kSyntaxError, "line 99, column 1: invalid syntax"),
            "The code is not valid Python: line 99, column 1: invalid syntax");
  EXPECT_EQ(told(Stage::kSyntax, Outcome::kSyntaxError, "the code holds NUL bytes"),
            "The code is not valid Python: the code holds NUL bytes");
  EXPECT_THAT(told(Stage::kTinyRun, Outcome::kRuntimeError, "kernel other, line 1 of its text"), Not(HasSubstr("|")));
}

}  // namespace
}  // namespace tritonrl::feedback_test
