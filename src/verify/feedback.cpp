// SPDX-License-Identifier: Apache-2.0
#include "verify/feedback.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr char kGap[] = "\n...\n";

// A line of the code and its neighbours, counted from 1; "" where there is no such line.
std::string excerpt(const std::string& code, int64_t line) {
  std::vector<std::string> lines = split(code, '\n');
  auto count = static_cast<int64_t>(lines.size());
  if (line < 1 || line > count) return "";
  std::string out;
  for (int64_t n = std::max<int64_t>(line - 1, 1); n <= std::min(line + 1, count); ++n) {
    out += cat("\n", n == line ? "> " : "  ", n, " | ", lines[static_cast<size_t>(n - 1)].substr(0, 200));
  }
  return valid_utf8(out);
}

const char* doing(Stage stage) {
  switch (stage) {
    case Stage::kTinyRun:
      return "running it on small inputs";
    case Stage::kFullRun:
      return "running it on the inputs of the task";
    case Stage::kTime:
      return "timing it";
    default:
      return "importing it, constructing ModelNew or compiling its kernels";
  }
}

std::string human_time(double seconds) {
  if (seconds < 1e-3) return fixed(1e6 * seconds, 1) + " us";
  if (seconds < 1) return fixed(1e3 * seconds, 2) + " ms";
  return fixed(seconds, 2) + " s";
}

std::string of_a_pass(const PublicVerdict& verdict) {
  if (!verdict.timing) return "The answer is correct. Its time was not measured.";
  const TimingResult& t = *verdict.timing;
  std::string said = cat("The answer is correct. It takes ", human_time(t.candidate_s), ", the reference ",
                         human_time(t.reference_s), ": ", fixed(t.ratio, 2), " times as fast");
  if (t.ratio_low < t.ratio_high) {
    said += cat(" (95 % interval ", fixed(t.ratio_low, 2), " to ", fixed(t.ratio_high, 2), ")");
  }
  said += t.speedup == 1 && t.ratio != 1 ? ", which the noise of timing does not tell from equally fast." : ".";
  if (verdict.triton_share) {
    said += cat(" ", fixed(100 * *verdict.triton_share, 0), " % of its time goes to Triton kernels.");
  }
  return said;
}

std::string headline(const PublicVerdict& verdict, const std::string& said) {
  const char* where = doing(verdict.stopped_at);
  switch (outcome_of(verdict.finding.rule)) {
    case Outcome::kNoCode:
      return cat("There is no code to run: ", said, ".");
    case Outcome::kSyntaxError:
      return cat("The code is not valid Python: ", said);
    case Outcome::kRuleBreak:
      return cat("The code breaks a rule of the task: ", said);
    case Outcome::kCompileError:
      return cat("An error came up while ", where, ":\n", said);
    case Outcome::kRuntimeError:
      return verdict.stopped_at > Stage::kCompile ? cat("An error came up while ", where, ":\n", said)
                                                  : cat("An error came up in forward():\n", said);
    case Outcome::kWrongOutput:
      return cat("The result is wrong, found by ", where, ": ", said);
    case Outcome::kNotFinite:
      return cat("The result holds NaN or infinity where the reference has none, found by ", where, ": ", said);
    case Outcome::kTimeout:
      return cat("The time limit passed while ", where, ".");
    case Outcome::kOutOfMemory:
      return cat("The memory limit was reached while ", where, ": ", said);
    case Outcome::kTampered:
      return "The code was rejected: it does something else than compute the result.";
    case Outcome::kUnsupported:
      return cat("The code cannot be judged here: ", said);
    default:
      return of_a_pass(verdict);
  }
}

}  // namespace

std::string clip_middle(const std::string& text, int64_t limit) {
  CHECK(limit >= 16) << "a limit of " << limit;
  if (static_cast<int64_t>(text.size()) <= limit) return text;
  size_t room = static_cast<size_t>(limit) - (sizeof kGap - 1), head = room * 2 / 5;
  auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t begin = text.size() - (room - head);
  while (head > 0 && inside(head)) --head;
  while (begin < text.size() && inside(begin)) ++begin;
  return cat(text.substr(0, head), kGap, text.substr(begin));
}

PublicVerdict public_part(const Verdict& verdict) {
  CHECK(verdict.finding().outcome() == verdict.outcome) << "a verdict without its finding";
  return {verdict.stopped_at, verdict.finding().told, verdict.timing, verdict.triton_share, verdict.code};
}

std::string feedback_text(const PublicVerdict& verdict, int64_t max_chars) {
  const PublicFinding& finding = verdict.finding;
  Outcome outcome = outcome_of(finding.rule);
  CHECK(outcome != Outcome::kHarnessFault) << "feedback on a fault of ours";
  std::string lines = outcome == Outcome::kTampered ? "" : excerpt(verdict.code, finding.line);
  // What tensors are while they are recorded.
  std::string said = replace_all(policy_text(finding), "'FakeTensor'", "'Tensor'");
  return clip_middle(valid_utf8(trim(headline(verdict, said) + lines)), max_chars);
}

}  // namespace tritonrl
