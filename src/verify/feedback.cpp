// SPDX-License-Identifier: Apache-2.0
#include "verify/feedback.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr char kGap[] = "\n...\n";

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The number that stands at `at`; 0 where there is none.
int64_t number_at(std::string_view text, size_t at) {
  int64_t value = 0;
  for (; at < text.size() && is_digit(text[at]) && value < 100000000; ++at) value = 10 * value + (text[at] - '0');
  return value;
}

// The number right behind the first `before` in the text.
std::optional<int64_t> number_after(std::string_view text, std::string_view before) {
  size_t at = text.find(before);
  if (at == std::string_view::npos || at + before.size() >= text.size() || !is_digit(text[at + before.size()])) {
    return std::nullopt;
  }
  return number_at(text, at + before.size());
}

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

// "kernel NAME, line N of its text" names a line of a kernel, whose text begins with its def.
std::string kernel_excerpt(const std::string& code, const std::string& message) {
  size_t at = message.find("kernel ");
  while (at != std::string::npos) {
    size_t begin = at + 7, end = begin;
    while (end < message.size() && is_name_char(message[end])) ++end;
    std::string name = message.substr(begin, end - begin);
    auto line = number_after(std::string_view(message).substr(end, 40), ", line ");
    bool named = end > begin && message.compare(end, 7, ", line ") == 0 && line;
    size_t def = named ? code.find(cat("def ", name, "(")) : std::string::npos;
    if (def != std::string::npos) {
      auto first = std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(def), '\n') + 1;
      return excerpt(code, first + *line - 1);
    }
    at = message.find("kernel ", end);
  }
  return "";
}

// An error over what is allowed: two digits, and nothing beyond a thousand.
std::string times_allowed(double error, double allowed) {
  double ratio = allowed > 0 ? error / allowed : INFINITY;
  if (!(ratio < 1000)) return "over 1000 times";
  if (ratio < 9.95) return fixed(ratio, 1) + " times";
  double unit = ratio < 99.5 ? 1 : 10;
  return fixed(std::round(ratio / unit) * unit, 0) + " times";
}

std::string mask_fractions(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool starts = is_digit(text[i]) && (i == 0 || !is_name_char(text[i - 1]));
    size_t end = i;
    bool fraction = false;
    while (starts && end < text.size()) {
      char c = text[end];
      bool sign = (c == '+' || c == '-') && end > i && (text[end - 1] == 'e' || text[end - 1] == 'E');
      bool point = c == '.' && end + 1 < text.size() && is_digit(text[end + 1]);
      bool exponent = (c == 'e' || c == 'E') && end + 1 < text.size();
      if (!is_digit(c) && !sign && !point && !exponent) break;
      fraction = fraction || point || exponent;
      ++end;
    }
    if (starts && fraction) {
      out += "(a number)";
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// The word that begins at `at`: up to a space, a comma or a bracket.
std::string word_at(const std::string& text, size_t at) {
  size_t end = text.find_first_of(" ,)\n", at);
  return text.substr(at, end == std::string::npos ? end : end - at);
}

// Does ", expected ..." name a structure, a shape, a dtype or a number of items? The dump of a value never looks so.
bool is_structure(const std::string& before, const std::string& expected) {
  for (const char* kind : {"a tensor", "a list", "a tuple", "a dict", "a value that is no tensor"}) {
    if (expected == kind) return true;
  }
  for (const char* type : {"float", "bfloat", "int", "uint", "bool", "complex"}) {
    if (expected.rfind(type, 0) == 0) return std::all_of(expected.begin(), expected.end(), is_name_char);
  }
  if (expected.rfind('(', 0) == 0) return expected.find_first_not_of("(0123456789, )") == std::string::npos;
  return before.ends_with(" items") || before.ends_with(" items under other keys");
}

// " (error E, allowed A)", or the same in other words, as a ratio; "" where the text has none.
std::string ratio_in(const std::string& text, const std::string& error_word) {
  size_t error = text.find(error_word), allowed = text.find(", allowed ");
  if (error == std::string::npos || allowed == std::string::npos || allowed < error) return "";
  return times_allowed(std::strtod(text.c_str() + error + error_word.size(), nullptr),
                       std::strtod(text.c_str() + allowed + 10, nullptr));
}

// What compares an output with its reference writes (verify/compare.h), without the values.
std::string without_values(const std::string& message) {
  if (size_t at = message.find(": expected "), got = message.find(", got "); at != std::string::npos) {
    std::string said = mask_fractions(message.substr(0, at));
    if (got == std::string::npos || got < at) return said;
    std::string value = word_at(message, got + 6), rest = message.substr(got + 6 + value.size());
    bool finite = value.find("nan") == std::string::npos && value.find("inf") == std::string::npos;
    std::string ratio = ratio_in(rest, " (error ");
    size_t sizes = rest.find(" (with ");
    said += !finite ? cat(": it is ", value, " there")
                    : (ratio.empty() ? std::string(": the value there is another")
                                     : cat(": the error there is ", ratio, " what is allowed"));
    return said + (sizes == std::string::npos ? "" : mask_fractions(rest.substr(sizes)));
  }
  if (size_t at = message.find(": root mean square error "); at != std::string::npos) {
    size_t sizes = message.find(" (with ", at);
    return cat(mask_fractions(message.substr(0, at)), ": the root mean square error is ",
               ratio_in(message, "root mean square error "), " what is allowed",
               sizes == std::string::npos ? "" : mask_fractions(message.substr(sizes)));
  }
  size_t at = message.rfind(", expected ");
  if (at == std::string::npos) return mask_fractions(message);
  size_t sizes = message.find(" (with ", at);
  std::string before = message.substr(0, at), expected = message.substr(at + 11, sizes - at - 11);
  std::string after = sizes == std::string::npos ? "" : mask_fractions(message.substr(sizes));
  if (is_structure(before, expected)) return mask_fractions(before) + ", expected " + expected + after;
  return mask_fractions(before) + ", which is not what the reference gives" + after;
}

// Where inputs have values, what a process wrote is not passed on.
std::string without_stderr(const std::string& message) {
  size_t at = message.find("; it said: ");
  return at == std::string::npos ? message : message.substr(0, at);
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

std::string of_a_pass(const Verdict& verdict) {
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

std::string headline(const Verdict& verdict, const std::string& said) {
  const char* where = doing(verdict.stopped_at);
  switch (verdict.outcome) {
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

std::string feedback_text(const Verdict& verdict, int64_t max_chars) {
  CHECK(!verdict.is_harness_fault()) << "feedback on a fault of ours";
  std::string message = verdict.reason(), lines;
  bool values = verdict.outcome == Outcome::kWrongOutput || verdict.outcome == Outcome::kNotFinite;
  if (verdict.outcome == Outcome::kSyntaxError) {
    if (auto line = number_after(message, "line ")) lines = excerpt(verdict.code, *line);
  } else if (verdict.outcome != Outcome::kTampered) {
    lines = kernel_excerpt(verdict.code, message);
  }
  if (verdict.stopped_at > Stage::kCompile) message = without_stderr(message);
  if (values) message = without_values(message);
  message = replace_all(message, "'FakeTensor'", "'Tensor'");  // What tensors are while they are recorded.
  return clip_middle(valid_utf8(trim(headline(verdict, message) + lines)), max_chars);
}

}  // namespace tritonrl
