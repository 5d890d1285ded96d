// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_filter.h"

#include <cctype>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl {

namespace {

using Number = int64_t (*)(const Task&, const TaskFacts&);
using Text = const std::string& (*)(const Task&);
using Set = const std::set<std::string>& (*)(const TaskFacts&);

const std::map<std::string, Number>& numbers() {
  static const std::map<std::string, Number> fields = {
      {"level", [](const Task& t, const TaskFacts&) { return static_cast<int64_t>(t.level); }},
      {"difficulty", [](const Task& t, const TaskFacts&) { return t.difficulty; }},
      {"elements", [](const Task&, const TaskFacts& f) { return f.elements; }},
      {"characters", [](const Task& t, const TaskFacts&) { return static_cast<int64_t>(t.source.size()); }},
  };
  return fields;
}

const std::map<std::string, Text>& texts() {
  static const std::map<std::string, Text> fields = {
      {"id", [](const Task& t) -> const std::string& { return t.id; }},
      {"name", [](const Task& t) -> const std::string& { return t.name; }},
      {"origin", [](const Task& t) -> const std::string& { return t.origin; }},
      {"licence", [](const Task& t) -> const std::string& { return t.licence; }},
      {"graph", [](const Task& t) -> const std::string& { return t.graph_hash; }},
  };
  return fields;
}

struct Token {
  std::string text;
  size_t at = 0;
  bool quoted = false;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {
    size_t i = 0;
    while (i < text.size()) {
      char c = text[i];
      if (std::isspace(static_cast<unsigned char>(c))) {
        ++i;
        continue;
      }
      size_t begin = i;
      if (c == '\'' || c == '"') {
        size_t end = text.find(c, i + 1);
        if (end == std::string::npos) fail(i, "a quote is not closed", "close it");
        tokens_.push_back({text.substr(i + 1, end - i - 1), begin, true});
        i = end + 1;
        continue;
      }
      if (c == '(' || c == ')' || c == '~') {
        ++i;
      } else if (c == '=' || c == '!' || c == '<' || c == '>') {
        i += 1 + (i + 1 < text.size() && text[i + 1] == '=');
      } else {
        while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i])) &&
               std::string("()=!<>~'\"").find(text[i]) == std::string::npos) {
          ++i;
        }
      }
      tokens_.push_back({text.substr(begin, i - begin), begin, false});
    }
  }

  TaskFilter run() {
    if (tokens_.empty()) return [](const Task&, const TaskFacts&) { return true; };
    TaskFilter filter = either();
    if (next_ < tokens_.size())
      fail(tokens_[next_].at, "something is left over", "join comparisons with 'and' or 'or'");
    return filter;
  }

 private:
  [[noreturn]] void fail(size_t at, const std::string& what, const std::string& hint) const {
    throw usage_error(what, cat("--where, character ", at + 1, ": '", text_.substr(at, 30), "'"), hint);
  }
  size_t here() const { return next_ < tokens_.size() ? tokens_[next_].at : text_.size(); }
  bool take(const std::string& word) {
    if (next_ == tokens_.size() || tokens_[next_].quoted || tokens_[next_].text != word) return false;
    ++next_;
    return true;
  }

  TaskFilter either() {
    TaskFilter left = both();
    while (take("or")) {
      left = [a = std::move(left), b = both()](const Task& t, const TaskFacts& f) { return a(t, f) || b(t, f); };
    }
    return left;
  }
  TaskFilter both() {
    TaskFilter left = term();
    while (take("and")) {
      left = [a = std::move(left), b = term()](const Task& t, const TaskFacts& f) { return a(t, f) && b(t, f); };
    }
    return left;
  }
  TaskFilter term() {
    if (++depth_ > 100) fail(here(), "too deeply nested", "write it flatter");
    TaskFilter out;
    if (take("not")) {
      out = [a = term()](const Task& t, const TaskFacts& f) { return !a(t, f); };
    } else if (take("(")) {
      out = either();
      if (!take(")")) fail(here(), "a parenthesis is not closed", "add ')'");
    } else {
      out = comparison();
    }
    --depth_;
    return out;
  }

  TaskFilter comparison() {
    size_t at = here();
    if (next_ + 3 > tokens_.size()) fail(at, "a comparison is not complete", "write field=value, as in level=2");
    std::string field = tokens_[next_].text, op = tokens_[next_ + 1].text, value = tokens_[next_ + 2].text;
    size_t op_at = tokens_[next_ + 1].at, value_at = tokens_[next_ + 2].at;
    next_ += 3;
    static const std::set<std::string> kOperators = {"=", "!=", "<", "<=", ">", ">=", "~"};
    if (!kOperators.count(op)) fail(op_at, cat("'", op, "' is no operator"), "operators: = != < <= > >= ~");
    if (auto it = numbers().find(field); it != numbers().end())
      return compare_number(it->second, op, value, op_at, value_at);
    if (auto it = texts().find(field); it != texts().end()) {
      if (op == "=") return [get = it->second, value](const Task& t, const TaskFacts&) { return get(t) == value; };
      if (op == "!=") return [get = it->second, value](const Task& t, const TaskFacts&) { return get(t) != value; };
      if (op != "~") fail(op_at, cat("'", field, "' is a text"), "texts know =, != and ~");
      return [get = it->second, value](const Task& t, const TaskFacts&) {
        return get(t).find(value) != std::string::npos;
      };
    }
    if (field == "op" || field == "dtype" || field == "solution") {
      if (op != "=" && op != "!=") fail(op_at, cat("'", field, "' cannot be compared by '", op, "'"), "use = or !=");
      bool wanted = op == "=";
      if (field == "op") {
        return [key = operator_key(value), wanted](const Task&, const TaskFacts& f) {
          return (f.operators.count(key) > 0) == wanted;
        };
      }
      if (field == "dtype") {
        return [value, wanted](const Task&, const TaskFacts& f) { return (f.dtypes.count(value) > 0) == wanted; };
      }
      if (value != "yes" && value != "no")
        fail(value_at, cat("'", value, "' is neither yes nor no"), "write solution=yes");
      return [has = (value == "yes") == wanted](const Task& t, const TaskFacts&) { return !t.solution.empty() == has; };
    }
    std::vector<std::string> known = {"op", "dtype", "solution"};
    for (const auto& [name, get] : numbers()) known.push_back(name);
    for (const auto& [name, get] : texts()) known.push_back(name);
    std::string close = nearest(field, known);
    fail(at, cat("there is no field '", field, "'"),
         close.empty() ? "fields: " + join(known, ", ") : "did you mean '" + close + "'?");
  }

  TaskFilter compare_number(Number get, const std::string& op, const std::string& value, size_t op_at,
                            size_t value_at) const {
    char* end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0')
      fail(value_at, cat("'", value, "' is no number"), "this field is a number, as in level=2 or elements>1e6");
    if (op == "~") fail(op_at, "'~' is for texts", "use = != < <= > >=");
    return [get, op, number](const Task& t, const TaskFacts& f) {
      auto v = static_cast<double>(get(t, f));
      if (op == "=") return v == number;
      if (op == "!=") return v != number;
      if (op == "<") return v < number;
      if (op == "<=") return v <= number;
      return op == ">" ? v > number : v >= number;
    };
  }

  std::string text_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

TaskFilter parse_task_filter(const std::string& text) { return Parser(text).run(); }

}  // namespace tritonrl
