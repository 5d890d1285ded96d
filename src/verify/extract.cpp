// SPDX-License-Identifier: Apache-2.0
#include "verify/extract.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace tritonrl {
namespace {

struct Fence {
  char mark = 0;
  size_t length = 0;
  std::string language;  // First word after the marks, lower case.
  bool bare = false;     // Nothing but marks: may close a block.
};

std::optional<Fence> as_fence(std::string_view line) {
  size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (begin > 3 || begin == line.size() || (line[begin] != '`' && line[begin] != '~')) return std::nullopt;
  Fence fence;
  fence.mark = line[begin];
  size_t end = begin;
  while (end < line.size() && line[end] == fence.mark) ++end;
  fence.length = end - begin;
  if (fence.length < 3) return std::nullopt;
  std::string info = trim(line.substr(end));
  if (fence.mark == '`' && info.find('`') != std::string::npos) return std::nullopt;  // ```inline``` text.
  fence.bare = info.empty();
  for (char c : info) {
    if (std::isspace(static_cast<unsigned char>(c)) || c == '{' || c == ',') break;
    fence.language += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return fence;
}

bool is_python(const std::string& language) {
  return language == "python" || language == "py" || language == "python3" || language == "triton";
}

}  // namespace

Extraction accept_code(std::string_view file) {
  if (trim(file).empty()) return {false, "", Rule::kCodeEmpty};
  if (static_cast<int64_t>(file.size()) > kMaxCandidateBytes) return {false, "", Rule::kCodeTooLarge};
  return {true, std::string(file), Rule::kPass};
}

Extraction extract_code(std::string_view answer) {
  std::optional<std::string_view> python, any;
  std::optional<Fence> open;
  size_t body = 0;
  for (size_t begin = 0; begin < answer.size();) {
    size_t end = std::min(answer.find('\n', begin), answer.size());
    std::string_view line = answer.substr(begin, end - begin);
    auto fence = as_fence(line);
    if (!open && fence) {
      open = fence;
      body = std::min(end + 1, answer.size());
    } else if (open && fence && fence->bare && fence->mark == open->mark && fence->length >= open->length) {
      any = answer.substr(body, begin - body);
      if (is_python(open->language)) python = any;
      open.reset();
    }
    begin = end + 1;
  }
  if (!python && !any) return {false, "", open ? Rule::kCodeNotClosed : Rule::kNoCodeBlock};
  return accept_code(python ? *python : *any);
}

}  // namespace tritonrl
