// SPDX-License-Identifier: Apache-2.0
#include "verify/finding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/files/json_fields.h"
#include "base/text.h"
#include "verify/sandbox/blob.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

struct Row {
  Outcome outcome;
  const char* detector;
  const char* says;
};

constexpr Row kRows[] = {
#define TRITONRL_RULE(symbol, name, outcome, detector, says) {Outcome::outcome, detector, says},
#include "verify/rules.inc"
#undef TRITONRL_RULE
};

const Row& row_of(Rule rule) { return kRows[static_cast<size_t>(rule)]; }

constexpr const char* kKinds[] = {"a tensor", "a value that is no tensor", "a list", "a tuple", "a dict"};

bool is_path_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._-+/@", c); }

// Seven digits.
std::string short_number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.7g", value);
  return buffer;
}

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Two digits, and nothing beyond kMostTimesAllowed.
double times_allowed(double error, double allowed) {
  double ratio = allowed > 0 ? error / allowed : INFINITY;
  if (!(ratio < kMostTimesAllowed)) return kMostTimesAllowed;
  double unit = ratio < 9.95 ? 0.1 : ratio < 99.5 ? 1 : 10;
  return std::round(ratio / unit) * unit;
}

void set_error(Finding* finding, double error, double allowed) {
  finding->told.times_allowed = times_allowed(error, allowed);
  if (!std::isfinite(error) || !std::isfinite(allowed)) return;  // JSON has no such numbers.
  finding->secret.error = error;
  finding->secret.allowed = allowed;
}

std::string times_text(double times) {
  if (times >= kMostTimesAllowed) return "over 1000 times";
  return fixed(times, times < 9.95 ? 1 : 0) + " times";
}

// What people are told of the values of an element, an output or a scalar.
std::string human_values(const Finding& finding) {
  const SecretFinding& secret = finding.secret;
  std::string errors;
  if (secret.error && secret.allowed) {
    errors = cat("error ", short_number(*secret.error), ", allowed ", short_number(*secret.allowed));
  }
  switch (finding.rule()) {
    case Rule::kImprecise:
      return "root mean square " + errors;
    case Rule::kScalar:
      return cat(", expected ", secret.expected);
    default:
      return cat("expected ", secret.expected, ", got ", secret.got, errors.empty() ? "" : cat(" (", errors, ")"));
  }
}

std::string policy_values(const PublicFinding& told) {
  switch (told.rule) {
    case Rule::kImprecise:
      return cat("the root mean square error is ", times_text(told.times_allowed), " what is allowed");
    case Rule::kScalar:
      return ", which is not what the reference gives";
    default:
      if (!told.not_finite.empty()) return cat("it is ", told.not_finite, " there");
      if (told.times_allowed <= 0) return "the value there is another";
      return cat("the error there is ", times_text(told.times_allowed), " what is allowed");
  }
}

std::string what_is_told(const PublicFinding& told, const std::string& values) {
  const std::string& name = told.name.str();
  switch (told.rule) {
    case Rule::kPass:
      return "";
    case Rule::kElements:
    case Rule::kNotFinite:
      return cat(name, " differs from the reference in ", told.wrong, " of ", told.elements, " elements; first at ",
                 dims_text(told.index), ": ", values);
    case Rule::kImprecise:
      return cat(name, " is too imprecise for ", told.expected.str(), ": ", values);
    case Rule::kScalar:
      return cat(name, " is ", told.scalar.str(), values);
    case Rule::kKind:
      return cat(name, " is ", told.got.str(), ", expected ", told.expected.str());
    case Rule::kItems:
      return cat(name, " has ", told.got.str(), ", expected ", told.expected.str());
    case Rule::kShape:
      return cat(name, " has shape ", told.got.str(), ", expected ", told.expected.str());
    case Rule::kDtype:
      if (told.got.empty()) return says(told.rule);  // Seen before it ran.
      return cat(name, " has dtype ", told.got.str(), ", expected ", told.expected.str());
    case Rule::kInputChanged:
      return cat("input ", told.number, " is changed, which the reference does not do");
    case Rule::kParameterChanged:
      return cat("parameter ", name, " is changed, which the reference does not do");
    case Rule::kLibraryCalls:
    case Rule::kWeightsComputed: {
      std::vector<std::string> names;
      for (const CleanText& one : told.operations) names.push_back(one.str());
      return cat(says(told.rule), ": ", join(names, ", "));
    }
    default:
      return told.message.empty() ? says(told.rule) : told.message.str();
  }
}

// Between the case it happened in, the kernel and the sizes.
std::string in_its_place(const PublicFinding& told, const std::string& what) {
  std::string out = told.case_name.empty() ? "" : cat("case ", told.case_name.str(), ": ");
  if (!told.kernel.empty()) {
    out += cat("kernel ", told.kernel.str(), told.line > 0 ? cat(", line ", told.line) : "", ":");
    out += what.find('\n') == std::string::npos ? " " : "\n";
  }
  if (!told.configuration.empty()) out += cat("with the configuration ", told.configuration.str(), ": ");
  if (told.call > 0) {
    out += cat("right in one call of forward(), not in call ", told.call, " with what the calls before it left: ");
  }
  out += what;
  std::vector<std::string> sizes;
  for (const auto& [name, value] : told.sizes) sizes.push_back(cat(name, " = ", value));
  return sizes.empty() ? out : cat(out, " (with ", join(sizes, ", "), ")");
}

}  // namespace

Outcome outcome_of(Rule rule) { return row_of(rule).outcome; }
const char* detector_of(Rule rule) { return row_of(rule).detector; }
const char* says(Rule rule) { return row_of(rule).says; }

std::string clean_message(std::string_view text) {
  std::string valid = trim(printable(text)), out;
  for (size_t i = 0; i < valid.size();) {
    bool starts = valid[i] == '/' && (i == 0 || !is_path_char(valid[i - 1]));
    size_t end = i;
    while (starts && end < valid.size() && is_path_char(valid[end])) ++end;
    std::string_view token = std::string_view(valid).substr(i, end - i);
    size_t slash = token.rfind('/');
    if (starts && slash > 0 && slash != std::string_view::npos && token.substr(0, 2) != "//") {
      out += token.substr(slash + 1);  // An absolute path: keep its last part.
      i = end;
    } else {
      out += valid[i++];
    }
  }
  if (out.size() > 2000) out = cat(out.substr(0, 600), "\n...\n", out.substr(out.size() - 1350));
  return valid_utf8(out);
}

Form::Form(Kind kind) : text_(kKinds[static_cast<size_t>(kind)]) {}
Form::Form(const std::vector<int64_t>& shape) : text_(dims_text(shape)) {}
Form::Form(Dtype dtype) : text_(to_string(dtype)) {}

Form Form::items(size_t count, bool other_keys) {
  Form form;
  form.text_ = cat(count, " items", other_keys ? " under other keys" : "");
  return form;
}

Finding::Finding(Rule rule, std::string_view words) {
  told.rule = rule;
  bool kept = outcome() == Outcome::kTampered || outcome() == Outcome::kHarnessFault;
  (kept ? secret.detail : told.message) = words;
}

Finding wrong_element(Rule rule, const WrongElement& element) {
  CHECK(rule == Rule::kElements || rule == Rule::kNotFinite) << name_of(rule);
  Finding finding(rule);
  finding.told.name = element.output;
  finding.told.wrong = element.wrong;
  finding.told.elements = element.elements;
  finding.told.index = element.index;
  finding.secret.expected = short_number(element.expected);
  finding.secret.got = short_number(element.got);
  if (!std::isfinite(element.got)) {
    finding.told.not_finite = std::isnan(element.got) ? "nan" : element.got > 0 ? "inf" : "-inf";
  } else if (std::isfinite(element.expected) && element.allowed >= 0) {
    set_error(&finding, std::abs(element.got - element.expected), element.allowed);
  }
  return finding;
}

Finding imprecise(const std::string& output, Dtype dtype, double error, double allowed) {
  Finding finding(Rule::kImprecise);
  finding.told.name = output;
  finding.told.expected = Form(dtype);
  set_error(&finding, error, allowed);
  return finding;
}

Finding other_form(Rule rule, const std::string& output, Form got, Form expected) {
  Finding finding(rule);
  finding.told.name = output;
  finding.told.got = std::move(got);
  finding.told.expected = std::move(expected);
  return finding;
}

Finding other_scalar(const std::string& output, const Json& got, const Json& expected) {
  Finding finding(Rule::kScalar);
  finding.told.name = output;
  finding.told.scalar = dumped(got);
  finding.secret.expected = clean_message(dumped(expected));
  return finding;
}

Finding input_changed(int64_t number) {
  Finding finding(Rule::kInputChanged);
  finding.told.number = number;
  return finding;
}

Finding with_secret(Finding finding, std::string_view detail) {
  finding.secret.detail = detail;
  return finding;
}

std::string human_text(const Finding& finding) {
  const PublicFinding& told = finding.told;
  std::string what = what_is_told(told, human_values(finding));
  const CleanText& detail = finding.secret.detail;
  if (!detail.empty()) what = told.message.empty() ? detail.str() : cat(what, "; ", detail.str());
  return in_its_place(told, what);
}

std::string policy_text(const PublicFinding& told) {
  return in_its_place(told, what_is_told(told, policy_values(told)));
}

// --- JSON.

template <class Self, class V>
void SecretFinding::json_fields(Self& self, V& v) {
  v.optional("expected", self.expected);
  v.optional("got", self.got);
  v.optional("error", self.error);
  v.optional("allowed", self.allowed);
  v.optional("detail", self.detail);
}

template <class Self, class V>
void Finding::json_fields(Self& self, V& v) {
  auto& told = self.told;
  v("rule", told.rule);
  v.optional("phase", told.phase);
  v.optional("message", told.message);
  v.optional("kernel", told.kernel);
  v.optional("line", told.line);
  v.optional("name", told.name);
  v.optional("number", told.number, -1);
  v.optional("operations", told.operations);
  v.optional("got", told.got);
  v.optional("expected", told.expected);
  v.optional("scalar", told.scalar);
  v.optional("wrong", told.wrong);
  v.optional("elements", told.elements);
  v.optional("index", told.index);
  v.optional("not_finite", told.not_finite);
  v.optional("times_allowed", told.times_allowed);
  v.optional("configuration", told.configuration);
  v.optional("call", told.call);
  v.optional("case", told.case_name);
  v.optional("sizes", told.sizes);
  v.optional("secret", self.secret);
}

Json to_json(const Finding& finding) { return json_of(finding); }

Finding finding_from_json(const Json& json, const std::string& where) {
  auto finding = from_json<Finding>(json, "a finding", where);
  PublicFinding& told = finding.told;
  for (std::string* text : {&told.phase, &told.not_finite, &finding.secret.expected, &finding.secret.got}) {
    *text = clean_message(*text);
  }
  return finding;
}

}  // namespace tritonrl
