// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_facts.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "data/python_source.h"
#include "data/tasks/shape_variants.h"

namespace tritonrl {

namespace {

// Recursive descent over + - * // ( ) names and numbers.
class Arithmetic {
 public:
  Arithmetic(const std::string& text, const std::map<std::string, int64_t>& names) : text_(text), names_(names) {}
  std::optional<int64_t> run() {
    int64_t value = sum();
    skip();
    if (!good_ || at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(const char* token) {
    skip();
    if (text_.compare(at_, std::string(token).size(), token) != 0) return false;
    at_ += std::string(token).size();
    return true;
  }
  int64_t bounded(int64_t value) {
    good_ &= value > -(int64_t{1} << 40) && value < (int64_t{1} << 40);
    return good_ ? value : 0;
  }
  int64_t sum() {
    int64_t value = product();
    while (good_) {
      if (take("+")) {
        value = bounded(value + product());
      } else if (take("-")) {
        value = bounded(value - product());
      } else {
        break;
      }
    }
    return value;
  }
  int64_t product() {
    int64_t value = atom();
    while (good_) {
      if (take("//")) {
        int64_t by = atom();
        good_ &= by > 0;
        if (good_) value = value / by;
      } else if (take("*")) {
        int64_t by = atom();
        good_ &= by == 0 || std::abs(value) < (int64_t{1} << 40) / std::max<int64_t>(1, std::abs(by));
        value = good_ ? value * by : 0;
      } else {
        break;
      }
    }
    return value;
  }
  int64_t atom() {
    skip();
    if (++depth_ > 64) good_ = false;
    if (!good_) return 0;
    int64_t value = 0;
    if (take("(")) {
      value = sum();
      good_ &= take(")");
    } else {
      size_t begin = at_;
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
      std::string word = text_.substr(begin, at_ - begin);
      if (!word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); })) {
        good_ &= word.size() <= 12;
        if (good_) value = std::stoll(word);
      } else if (auto it = names_.find(word); it != names_.end()) {
        value = it->second;
      } else {
        good_ = false;
      }
    }
    --depth_;
    return bounded(value);
  }

  const std::string& text_;
  const std::map<std::string, int64_t>& names_;
  size_t at_ = 0;
  int depth_ = 0;
  bool good_ = true;
};

// Arguments of the call whose parenthesis opens at `open`, split at the top level.
std::vector<std::string> arguments_at(const std::string& text, size_t open) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[') {
      if (depth++ == 0) continue;
    } else if (c == ')' || c == ']') {
      if (--depth == 0) return out;
    } else if (c == ',' && depth == 1) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
  }
  return {};
}

// Elements of one drawn tensor, or nothing.
std::optional<int64_t> elements_of_call(std::vector<std::string> arguments, bool shape_is_a_tuple,
                                        const std::map<std::string, int64_t>& constants) {
  if (shape_is_a_tuple) {  // randint(low, high, (M, N)) and randint(high, (M, N)).
    auto tuple =
        std::find_if(arguments.begin(), arguments.end(), [](const std::string& a) { return trim(a)[0] == '('; });
    if (tuple == arguments.end()) return std::nullopt;
    arguments = arguments_at(trim(*tuple), 0);
  } else if (!arguments.empty() && !trim(arguments[0]).empty() && (trim(arguments[0])[0] == '(') &&
             trim(arguments[0]).find(',') != std::string::npos) {
    arguments = arguments_at(trim(arguments[0]), 0);
  }
  int64_t count = 1;
  for (const std::string& argument : arguments) {
    if (argument.find('=') != std::string::npos || trim(argument).empty()) continue;
    auto value = whole_value(argument, constants);
    if (!value || *value < 1 || count > (int64_t{1} << 50) / *value) return std::nullopt;
    count *= *value;
  }
  return count;
}

}  // namespace

std::string operator_key(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::optional<int64_t> whole_value(const std::string& expression, const std::map<std::string, int64_t>& constants) {
  std::string text = trim(expression);
  return Arithmetic(text, constants).run();
}

TaskFacts facts_of(const Task& task) {
  TaskFacts facts;
  for (const std::string& name : operators_of_source(task.source)) facts.operators.insert(operator_key(name));
  for (const char* type : {"bfloat16", "float16", "float64"}) {
    size_t at = task.source.find(type);
    bool inside_another = at != std::string::npos && at > 0 && task.source[at - 1] == 'b';
    if (at != std::string::npos && !inside_another) facts.dtypes.insert(type);
  }
  if (task.source.find(".half()") != std::string::npos) facts.dtypes.insert("float16");
  if (facts.dtypes.empty() || task.source.find("float32") != std::string::npos) facts.dtypes.insert("float32");
  size_t begin = task.source.find("def get_inputs");
  if (begin == std::string::npos) return facts;
  size_t end = task.source.find("\ndef ", begin);
  std::string inputs = task.source.substr(begin, end == std::string::npos ? end : end - begin);
  auto constants = module_integers(task.source);
  int64_t total = 0;
  for (const char* call :
       {"torch.randn(", "torch.rand(", "torch.randint(", "torch.empty(", "torch.ones(", "torch.zeros("}) {
    std::string name = call;
    for (size_t at = inputs.find(name); at != std::string::npos; at = inputs.find(name, at + 1)) {
      auto count = elements_of_call(arguments_at(inputs, at + name.size() - 1), name == "torch.randint(", constants);
      if (!count) return facts;
      total += *count;
    }
  }
  facts.elements = total;
  return facts;
}

std::map<std::string, std::set<std::string>> operators_by_task(const std::vector<Task>& tasks) {
  std::map<std::string, std::set<std::string>> operators;
  for (const Task& task : tasks) operators[task.id] = facts_of(task).operators;
  return operators;
}

}  // namespace tritonrl
