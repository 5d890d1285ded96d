// SPDX-License-Identifier: Apache-2.0
// The patterns, for PCRE2's JIT.
#include "model/tokenizer/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace tritonrl {
namespace {

// As it stands in the tokenizer.json of every Qwen2.5 model.
constexpr const char* kQwenSplit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Bodies of character classes as `tokenizers` 0.22 has them (Oniguruma with Unicode 16, Rust's char::is_numeric).
// PCRE2 10.42 has Unicode 14, so what came later is listed; its \s also matches U+180E, so white space is spelled out.
// The ASCII part comes first because PCRE2 finds it in a bitmap before it looks at properties.
constexpr const char* kLetter =
    R"(A-Za-z\p{L}\x{1c89}-\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3}\x{10d4a}-\x{10d65})"
    R"(\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{1123f}-\x{11240}\x{11380}-\x{11389}\x{1138b}\x{1138e})"
    R"(\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3}\x{11bc0}-\x{11be0}\x{11f02}\x{11f04}-\x{11f10})"
    R"(\x{11f12}-\x{11f33}\x{1342f}\x{13441}-\x{13446}\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c})"
    R"(\x{18cff}\x{1b132}\x{1b155}\x{1df25}-\x{1df2a}\x{1e030}-\x{1e06d}\x{1e4d0}-\x{1e4eb}\x{1e5d0}-\x{1e5ed})"
    R"(\x{1e5f0}\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";
constexpr const char* kNumber =
    R"(0-9\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11f50}-\x{11f59}\x{16130}-\x{16139})"
    R"(\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3}\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})";
constexpr const char* kWhitespace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// {L}, {N}, {S} stand for the class bodies above.
//
// GPT-2's pattern between digits, as one pattern: a digit is a word, and white space before a digit is at the end of
// its stretch, so that `\s+(?!\S)` may take all of it.
constexpr const char* kDigitsThenGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+|[{N}]| ?[^{S}{L}{N}]+|[{S}]+(?![^{S}{N}])|[{S}]+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n{L}{N}]?[{L}]+|[{N}]| ?[^{S}{L}{N}]+[\r\n]*|[{S}]*[\r\n]+|)"
    R"([{S}]+(?![^{S}])|[{S}]+)";

// \p{P}, beyond PCRE2's.
constexpr const char* kPunctuation =
    R"(\p{P}\x{1b4e}-\x{1b4f}\x{1b7f}\x{10d6e}\x{113d4}-\x{113d5}\x{113d7}-\x{113d8}\x{11b00}-\x{11b09}\x{11be1}\x{11f43}-\x{11f4f}\x{16d6d}-\x{16d6f})"
    R"(\x{1e5ff})";
constexpr const char* kDigit = "[{N}]";
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+| ?[{N}]+| ?[^{S}{L}{N}]+|[{S}]+(?![^{S}])|[{S}]+)";

std::string with_classes(std::string pattern) {
  pattern = replace_all(pattern, "{P}", kPunctuation);
  pattern = replace_all(pattern, "{L}", kLetter);
  pattern = replace_all(pattern, "{N}", kNumber);
  return replace_all(pattern, "{S}", kWhitespace);
}

// object[key] when it is there, else `otherwise`.
Json value_or(const Json& object, const char* key, Json otherwise) {
  auto it = object.find(key);
  return it == object.end() ? otherwise : *it;
}

bool is_type(const Json& node, const char* type) { return node.is_object() && value_or(node, "type", "") == type; }

bool is_byte_level(const Json& node, bool use_regex) {
  return is_type(node, "ByteLevel") && value_or(node, "add_prefix_space", true) == false &&
         value_or(node, "use_regex", true) == use_regex;
}

bool is_digits(const Json& node) {
  return is_type(node, "Digits") && value_or(node, "individual_digits", false) == true;
}

bool is_qwen_split(const Json& node) {
  return is_type(node, "Split") && value_or(node, "behavior", "") == "Isolated" &&
         value_or(node, "invert", false) == false && value_or(node, "pattern", Json()) == Json{{"Regex", kQwenSplit}};
}

// An Oniguruma expression of a tokenizer.json with {L}, {N}, {P}, {S} in place of \p{L}, \p{N}, \p{P}, \s. Empty when
// it holds what PCRE2 might take otherwise.
std::string translated(std::string_view regex) {
  std::string out;
  bool in_class = false;
  auto take = [&](std::string_view what) {
    bool is = regex.starts_with(what);
    if (is) regex.remove_prefix(what.size());
    return is;
  };
  while (!regex.empty()) {
    bool found = false;
    for (const auto& [from, to] : {std::pair("\\p{L}", "{L}"), std::pair("\\p{N}", "{N}"), std::pair("\\p{P}", "{P}"),
                                   std::pair("\\s", "{S}")}) {
      if (!take(from)) continue;
      out += in_class ? std::string(to) : cat("[", to, "]");
      found = true;
      break;
    }
    if (found) continue;
    if (!in_class && take("\\S")) {
      out += "[^{S}]";
      continue;
    }
    if (regex[0] == '\\') {  // Of itself, or white space with the same name in both.
      if (regex.size() < 2 || std::string_view("rnt\\.+*?()[]{}|^$-/'\"").find(regex[1]) == std::string_view::npos)
        return "";
      out += regex.substr(0, 2);
      regex.remove_prefix(2);
      continue;
    }
    for (const char* group : {"(?i:", "(?:", "(?!", "(?="}) {
      if (!found && !in_class && take(group)) {
        out += group;
        found = true;
      }
    }
    if (found) continue;
    char c = regex[0];
    if (in_class && (c == '[' || c == '&')) return "";  // Nested classes and intersections.
    if (!in_class && (c == '^' || c == '$' || c == '.' || (c == '(' && regex.substr(1, 1) == "?"))) return "";
    if (!in_class && c == '{') {  // {n}, {n,} and {n,m}; what stands behind it, PCRE2 reads in its own way.
      size_t end = regex.find('}');
      if (end == std::string_view::npos || regex.find_first_not_of("0123456789,", 1) != end || regex[1] == ',' ||
          std::string_view("+?*{").find(end + 1 < regex.size() ? regex[end + 1] : ' ') != std::string_view::npos) {
        return "";
      }
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
    regex.remove_prefix(1);
    if (c == '[' && take("^")) out += '^';
  }
  return in_class ? "" : out;
}

// The pattern of one step; empty for a step that cuts nothing, nullopt for one that is not known.
std::optional<std::string> step_source(const Json& step) {
  if (is_digits(step)) return kDigit;
  if (is_byte_level(step, true)) return kGpt2;
  if (is_byte_level(step, false)) return "";
  if (!is_type(step, "Split") || value_or(step, "behavior", "") != "Isolated" ||
      value_or(step, "invert", false) != false) {
    return std::nullopt;
  }
  Json pattern = value_or(step, "pattern", Json());
  if (!pattern.is_object() || !pattern.contains("Regex") || !pattern["Regex"].is_string()) return std::nullopt;
  std::string source = translated(pattern["Regex"].get<std::string>());
  return source.empty() ? std::nullopt : std::optional(source);
}

Error unknown_pattern(const char* key, const Json& node, const std::string& where) {
  std::string shown = node.dump();
  if (shown.size() > 300) shown = shown.substr(0, 300) + " ...";
  return usage_error(
      cat("unknown tokenizer pattern: ", key, " = ", valid_utf8(shown)), where,
      "known are NFC or no normalizer, and Digits, Split (Regex, Isolated, plain classes) and ByteLevel");
}

}  // namespace

struct PreTokenizer::Pattern {
  pcre2_code* code = nullptr;
  bool jit = false;

  // `code` stays null when it is no pattern.
  Pattern(const std::string& source, bool anchored) {
    int error = 0;
    size_t offset = 0;
    uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | (anchored ? PCRE2_ANCHORED | PCRE2_NO_START_OPTIMIZE : 0);
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error, &offset, nullptr);
    if (code == nullptr) return;
    // Refused where memory may not be made executable; the interpreter is slower and matches the same.
    jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  }
  ~Pattern() { pcre2_code_free(code); }
  Pattern(const Pattern&) = delete;

  bool matches_nothing() const {
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr),
                                                                             pcre2_match_data_free);
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(""), 0, 0, 0, data.get(), nullptr) >= 0;
  }

  // The next match at or behind `at`; empty when there is none.
  std::string_view find(std::string_view text, size_t at, pcre2_match_data* data) const {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (jit) found = pcre2_jit_match(code, subject, text.size(), at, 0, data, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) return {};
    CHECK(found > 0) << "PCRE2 result " << found << " at byte " << at;
    const size_t* range = pcre2_get_ovector_pointer(data);
    return text.substr(range[0], range[1] - range[0]);
  }
};

PreTokenizer PreTokenizer::from_json(const Json& tokenizer, const std::string& where) {
  PreTokenizer result;
  Json normalizer = value_or(tokenizer, "normalizer", nullptr), pre = value_or(tokenizer, "pre_tokenizer", nullptr);
  if (is_type(normalizer, "Sequence")) {  // Of none or one it is that.
    Json members = value_or(normalizer, "normalizers", Json());
    if (members.is_array() && members.size() <= 1) normalizer = members.empty() ? Json() : Json(members[0]);
  }
  if (is_type(normalizer, "NFC")) {
    result.uses_nfc_ = true;
  } else if (!normalizer.is_null()) {
    throw unknown_pattern("normalizer", normalizer, where);
  }
  Json steps = is_type(pre, "Sequence") ? value_or(pre, "pretokenizers", nullptr) : Json::array({pre});
  std::string source;
  if (steps.is_array() && steps.size() == 2) {
    if (is_digits(steps[0]) && is_byte_level(steps[1], true)) source = kDigitsThenGpt2;
    if (is_qwen_split(steps[0]) && is_byte_level(steps[1], false)) source = kQwen;
  }
  if (!source.empty()) {
    result.pattern_ = std::make_shared<const Pattern>(with_classes(source), true);
    CHECK(result.pattern_->code) << source;
    return result;
  }
  if (!steps.is_array() || steps.empty() || !is_type(steps.back(), "ByteLevel")) {
    throw unknown_pattern("pre_tokenizer", pre, where);
  }
  for (const Json& step : steps) {
    auto one = step_source(step);
    if (!one) throw unknown_pattern("pre_tokenizer", step, where);
    if (one->empty()) continue;
    auto pattern = std::make_shared<const Pattern>(with_classes(*one), false);
    if (!pattern->code || pattern->matches_nothing()) throw unknown_pattern("pre_tokenizer", step, where);
    result.steps_.push_back(std::move(pattern));
  }
  return result;
}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& words) const {
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr),
                                                                           pcre2_match_data_free);
  CHECK(data != nullptr) << "out of memory";
  if (pattern_) {
    for (size_t at = 0; at < text.size();) {
      std::string_view word = pattern_->find(text, at, data.get());
      CHECK(!word.empty()) << "no word at byte " << at;
      words.push_back(word);
      at += word.size();
    }
    return;
  }
  std::vector<std::string_view> pieces, next;
  if (!text.empty()) pieces.push_back(text);
  for (const auto& step : steps_) {
    next.clear();
    for (std::string_view piece : pieces) {
      size_t done = 0;
      while (done < piece.size()) {
        std::string_view found = step->find(piece, done, data.get());
        if (found.empty()) break;
        auto at = static_cast<size_t>(found.data() - piece.data());
        if (at > done) next.push_back(piece.substr(done, at - done));
        next.push_back(found);
        done = at + found.size();
      }
      if (done < piece.size()) next.push_back(piece.substr(done));
    }
    pieces.swap(next);
  }
  words.insert(words.end(), pieces.begin(), pieces.end());
}

}  // namespace tritonrl
