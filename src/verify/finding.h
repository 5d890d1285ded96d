// SPDX-License-Identifier: Apache-2.0
// Finding: what a check found out about a candidate, as data: which rule, where, and by how much.
//
// It has two parts. What is *told* the policy may read in its next turn. What is *secret* is for people: expected
// values and what was held against them, what a process wrote while it saw inputs, how tampering was found out.
// policy_text() takes the first part alone, so no wording of any name, shape or message can make it print the second.
//
// Text that a candidate, its process or a task chose is a CleanText: made safe once, where the finding is made.
// All of it is a value. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/files/json.h"

namespace tritonrl {

enum class Dtype;    // verify/sandbox/blob.h
enum class Outcome;  // verify/verdict.h

// Closed; rules.inc is the table.
enum class Rule {
#define TRITONRL_RULE(symbol, name, outcome, detector, says) symbol,
#include "verify/rules.inc"
#undef TRITONRL_RULE
};

constexpr auto enum_names(Rule) {
  return std::array{
#define TRITONRL_RULE(symbol, name, outcome, detector, says) name,
#include "verify/rules.inc"
#undef TRITONRL_RULE
  };
}
Outcome outcome_of(Rule rule);
const char* detector_of(Rule rule);  // The check that turned a candidate away for how it tried; "" = none did.
const char* says(Rule rule);         // What it means, in one clause.

// Printable (base/text.h) without absolute paths (only their last part stays), at most about 2000 bytes: head and tail
// stay.
std::string clean_message(std::string_view text);

class CleanText {
 public:
  CleanText() = default;
  CleanText(const char* text) : text_(clean_message(text)) {}
  CleanText(const std::string& text) : text_(clean_message(text)) {}
  CleanText(std::string_view text) : text_(clean_message(text)) {}
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool operator==(const CleanText&) const = default;

 private:
  std::string text_;
};

// What an output is, but for its values: a kind, a number of items, a shape or a dtype. Made from such alone.
class Form {
 public:
  enum class Kind { kTensor, kValue, kList, kTuple, kDict };  // In Nest's order (sandbox/blob.h).
  Form() = default;
  explicit Form(Kind kind);
  explicit Form(const std::vector<int64_t>& shape);
  explicit Form(Dtype dtype);
  static Form items(size_t count, bool other_keys = false);
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool operator==(const Form&) const = default;

 private:
  friend class JsonReader;
  explicit Form(std::string_view text) : text_(clean_message(text)) {}
  std::string text_;
};

// Beyond this, an error is "over 1000 times what is allowed": an answer of zeros must not read the expected value off
// the ratio.
constexpr double kMostTimesAllowed = 1000;

struct PublicFinding {
  Rule rule = Rule::kPass;
  std::string phase;    // Of a failure in the worker: import, init, forward, compile or launch; "" = elsewhere.
  CleanText message;    // What Python, Triton, CUDA or the candidate itself said, where no answer was at hand.
  CleanText kernel;     // Which kernel; "" = none in particular.
  int64_t line = 0;     // Of the candidate's file, from 1; 0 = none in particular.
  CleanText name;       // Which output ("output[1]") or parameter.
  int64_t number = -1;  // Which input.
  std::vector<CleanText> operations;  // Library calls.
  Form got, expected;
  CleanText scalar;                 // The candidate's own value, of an output that is no tensor.
  int64_t wrong = 0, elements = 0;  // How many elements of how many,
  std::vector<int64_t> index;       // ... the first of them,
  std::string not_finite;           // ... what it is: "nan", "inf" or "-inf"; "" = finite,
  double times_allowed = 0;         // ... and its error in units of what is allowed: two digits; 0 = not compared so.
  CleanText configuration;          // Of an autotuner, where it is not the first: "kernel: BLOCK = 64".
  int64_t call = 0;                 // Which call of forward(), of those made without resetting it; 0 = the first.
  CleanText case_name;              // Of an additional case, else "".
  std::map<std::string, int64_t> sizes;  // Of the case, where it rebinds the task's.
};

struct SecretFinding {
  static constexpr bool kNoOtherFields = true;
  std::string expected, got;             // Values of the element at `index`, or of a scalar; "" = not compared.
  std::optional<double> error, allowed;  // Of that element, or (kImprecise) of the output as a whole.
  CleanText
      detail;  // What else people may read: a process's standard error, how a forgery was seen, what of ours broke.

  bool operator==(const SecretFinding&) const = default;
  template <class Self, class V>
  static void json_fields(Self& self, V& v);
};

struct Finding {
  static constexpr bool kNoOtherFields = true;
  PublicFinding told;
  SecretFinding secret;

  Finding() = default;  // Nothing is wrong.
  // `words` are told where they are about what the candidate did, and secret where its outcome is tampered or ours.
  Finding(Rule rule, std::string_view words = "");
  Rule rule() const { return told.rule; }
  Outcome outcome() const { return outcome_of(told.rule); }
  bool passed() const { return told.rule == Rule::kPass; }
  template <class Self, class V>
  static void json_fields(Self& self, V& v);
};

// Which element of an output is wrong, with both values; `allowed` < 0: nothing but the very value would do.
struct WrongElement {
  std::string output;
  int64_t wrong = 0, elements = 0;
  std::vector<int64_t> index;
  double expected = 0, got = 0, allowed = -1;
};
Finding wrong_element(Rule rule, const WrongElement& element);  // kElements or kNotFinite.
Finding imprecise(const std::string& output, Dtype dtype, double error, double allowed);
Finding other_form(Rule rule, const std::string& output, Form got, Form expected);  // kKind, kItems, kShape, kDtype.
Finding other_scalar(const std::string& output, const Json& got, const Json& expected);
Finding input_changed(int64_t number);
Finding with_secret(Finding finding, std::string_view detail);

// For people: everything, in one sentence or a few lines. "" for a pass.
std::string human_text(const Finding& finding);
// For the policy's next turn.
std::string policy_text(const PublicFinding& finding);

Json to_json(const Finding& finding);  // Only what is not empty; what is secret in an object of its own.
// Throws Error (usage) for anything that to_json() does not write.
Finding finding_from_json(const Json& json, const std::string& where);

}  // namespace tritonrl
