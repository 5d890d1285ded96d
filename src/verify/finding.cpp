// SPDX-License-Identifier: Apache-2.0
#include "verify/finding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "verify/sandbox/blob.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

struct Row {
  const char* name;
  Outcome outcome;
  const char* detector;
  const char* says;
};

constexpr Row kRows[] = {
#define TRITONRL_RULE(symbol, name, outcome, detector, says) {name, Outcome::outcome, detector, says},
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
    case Rule::kLibraryCalls: {
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
  out += what;
  std::vector<std::string> sizes;
  for (const auto& [name, value] : told.sizes) sizes.push_back(cat(name, " = ", value));
  return sizes.empty() ? out : cat(out, " (with ", join(sizes, ", "), ")");
}

}  // namespace

const char* to_string(Rule rule) { return row_of(rule).name; }
Outcome outcome_of(Rule rule) { return row_of(rule).outcome; }
const char* detector_of(Rule rule) { return row_of(rule).detector; }
const char* says(Rule rule) { return row_of(rule).says; }

std::optional<Rule> rule_from_string(std::string_view name) {
  for (Rule rule : all_rules()) {
    if (name == to_string(rule)) return rule;
  }
  return std::nullopt;
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (size_t i = 0; i < std::size(kRows); ++i) all.push_back(static_cast<Rule>(i));
    return all;
  }();
  return rules;
}

std::string clean_message(std::string_view text) {
  std::string valid = trim(valid_utf8(text)), out;
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
  CHECK(rule == Rule::kElements || rule == Rule::kNotFinite) << to_string(rule);
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

namespace {

// Writes what is not empty.
class FindingWriter {
 public:
  void text(const char* key, const std::string& value) {
    if (!value.empty()) json_[key] = value;
  }
  void text(const char* key, const CleanText& value) { text(key, value.str()); }
  template <class T>
  void value(const char* key, const T& value, bool there) {
    if (there) json_[key] = value;
  }
  Json json_ = Json::object();
};

}  // namespace

// Reads the members that FindingWriter writes, and insists that there are no others.
class FindingReader {
 public:
  FindingReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail("it is no object");
  }
  const Json* take(const char* key) {
    auto it = json_.find(key);
    if (it == json_.end()) return nullptr;
    ++taken_;
    return &*it;
  }
  void text(const char* key, std::string* out) {
    const Json* json = take(key);
    if (!json) return;
    if (!json->is_string()) fail(cat("\"", key, "\" is no text"));
    *out = clean_message(json->get<std::string>());
  }
  void text(const char* key, CleanText* out) {
    std::string value;
    text(key, &value);
    *out = value;
  }
  void form(const char* key, Form* out) { text(key, &out->text_); }
  template <class T>
  void number(const char* key, T* out) {
    if (const Json* json = take(key)) *out = number_of<T>(*json, key);
  }
  void number(const char* key, std::optional<double>* out) {
    if (const Json* json = take(key)) *out = number_of<double>(*json, key);
  }
  template <class T>
  T number_of(const Json& json, const char* key) const {
    bool fits = std::is_floating_point_v<T> ? json.is_number() : json.is_number_integer();
    if (!fits) fail(cat("\"", key, "\" is no number"));
    return json.get<T>();
  }
  const Json& list(const Json& json, const char* key) const {
    if (!json.is_array()) fail(cat("\"", key, "\" is no list"));
    return json;
  }
  void end() const {
    if (taken_ != json_.size()) fail("it has members that no finding has");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw usage_error("a finding cannot be read: " + why, where_);
  }

 private:
  const Json& json_;
  std::string where_;
  size_t taken_ = 0;
};

Json to_json(const Finding& finding) {
  const PublicFinding& told = finding.told;
  FindingWriter out, hidden;
  out.text("rule", std::string(to_string(told.rule)));
  out.text("phase", told.phase);
  out.text("message", told.message);
  out.text("kernel", told.kernel);
  out.value("line", told.line, told.line > 0);
  out.text("name", told.name);
  out.value("number", told.number, told.number >= 0);
  Json operations = Json::array();
  for (const CleanText& one : told.operations) operations.push_back(one.str());
  out.value("operations", operations, !operations.empty());
  out.text("got", told.got.str());
  out.text("expected", told.expected.str());
  out.text("scalar", told.scalar);
  out.value("wrong", told.wrong, told.wrong > 0);
  out.value("elements", told.elements, told.elements > 0);
  out.value("index", told.index, !told.index.empty());
  out.text("not_finite", told.not_finite);
  out.value("times_allowed", told.times_allowed, told.times_allowed > 0);
  out.text("case", told.case_name);
  out.value("sizes", told.sizes, !told.sizes.empty());
  hidden.text("expected", finding.secret.expected);
  hidden.text("got", finding.secret.got);
  if (finding.secret.error) hidden.json_["error"] = *finding.secret.error;
  if (finding.secret.allowed) hidden.json_["allowed"] = *finding.secret.allowed;
  hidden.text("detail", finding.secret.detail);
  out.value("secret", hidden.json_, !hidden.json_.empty());
  return std::move(out.json_);
}

Finding finding_from_json(const Json& json, const std::string& where) {
  FindingReader in(json, where);
  Finding finding;
  PublicFinding& told = finding.told;
  std::string rule;
  in.text("rule", &rule);
  if (auto known = rule_from_string(rule)) {
    told.rule = *known;
  } else {
    in.fail(cat("unknown rule \"", rule, "\""));
  }
  in.text("phase", &told.phase);
  in.text("message", &told.message);
  in.text("kernel", &told.kernel);
  in.number("line", &told.line);
  in.text("name", &told.name);
  in.number("number", &told.number);
  if (const Json* list = in.take("operations")) {
    for (const Json& one : in.list(*list, "operations")) {
      if (!one.is_string()) in.fail("\"operations\" holds something else than names");
      told.operations.emplace_back(one.get<std::string>());
    }
  }
  in.form("got", &told.got);
  in.form("expected", &told.expected);
  in.text("scalar", &told.scalar);
  in.number("wrong", &told.wrong);
  in.number("elements", &told.elements);
  if (const Json* list = in.take("index")) {
    for (const Json& one : in.list(*list, "index")) told.index.push_back(in.number_of<int64_t>(one, "index"));
  }
  in.text("not_finite", &told.not_finite);
  in.number("times_allowed", &told.times_allowed);
  in.text("case", &told.case_name);
  if (const Json* sizes = in.take("sizes")) {
    if (!sizes->is_object()) in.fail("\"sizes\" is no object");
    for (const auto& [name, value] : sizes->items()) told.sizes[name] = in.number_of<int64_t>(value, "sizes");
  }
  if (const Json* hidden = in.take("secret")) {
    FindingReader secret(*hidden, where);
    secret.text("expected", &finding.secret.expected);
    secret.text("got", &finding.secret.got);
    secret.number("error", &finding.secret.error);
    secret.number("allowed", &finding.secret.allowed);
    secret.text("detail", &finding.secret.detail);
    secret.end();
  }
  in.end();
  return finding;
}

}  // namespace tritonrl
