// SPDX-License-Identifier: Apache-2.0
#include "verify/trace/trace_words.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tritonrl {
namespace {

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

bool is_operator(const std::string& text) {
  auto parts = split(text, '.');
  return parts.size() == 3 && parts[0] == "aten" && is_word(parts[1]) && parts[1] != "from_file" && is_word(parts[2]) &&
         parts[2][0] != '_';
}

bool is_layout(const std::string& text) { return text == "strided"; }

bool is_memory_format(const std::string& text) {
  static const std::set<std::string> known = {"contiguous_format", "preserve_format", "channels_last",
                                              "channels_last_3d"};
  return known.count(text) > 0;
}

bool is_triton_dtype(const std::string& text) {
  static const std::set<std::string> known = {"bfloat16",   "float16",    "float32",  "float64",     "float8e4b15",
                                              "float8e4b8", "float8e4nv", "float8e5", "float8e5b16", "int1",
                                              "int8",       "int16",      "int32",    "int64",       "uint8",
                                              "uint16",     "uint32",     "uint64",   "void"};
  return known.count(text) > 0;
}

}  // namespace tritonrl
