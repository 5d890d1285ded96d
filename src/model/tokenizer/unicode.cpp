// SPDX-License-Identifier: Apache-2.0
// UTF-8 scanning and NFC by utf8proc.
#include "model/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"

namespace tritonrl {
namespace {

struct Step {
  size_t length = 1;  // Of a character, or of the bytes one U+FFFD stands for.
  bool valid = false;
  bool unfinished = false;  // Invalid only because the input ends here.
};

// Unicode standard, table 3-7 (well-formed UTF-8 byte sequences).
Step next_step(std::string_view bytes, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned lead = byte(at);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  size_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = lead == 0xE0   ? 0xA0
                 : lead == 0xF0 ? 0x90
                                : 0x80,
           high = lead == 0xED   ? 0x9F
                  : lead == 0xF4 ? 0x8F
                                 : 0xBF;
  for (size_t i = 1; i < need; ++i, low = 0x80, high = 0xBF) {
    if (at + i == bytes.size()) return {i, false, true};
    if (byte(at + i) < low || byte(at + i) > high) return {i, false, false};
  }
  return {need, true, false};
}

struct Range {
  char32_t first, last;
};

// Combining characters that utf8proc 2.8 (Unicode 15) reorders or composes and `tokenizers` 0.22 does not know yet.
// Found by comparing both on every code point between marks of low and of high class; unicode_test.cpp repeats that.
constexpr Range kInert[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x11930, 0x11930}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34},
    {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97},
    {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
};

bool is_inert(char32_t c) {
  const Range* it =
      std::lower_bound(std::begin(kInert), std::end(kInert), c, [](const Range& r, char32_t v) { return r.last < v; });
  return it != std::end(kInert) && c >= it->first;
}

char32_t code_point(std::string_view text, size_t at) {
  utf8proc_int32_t c = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                   static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  CHECK(c >= 0) << "nfc() was given invalid UTF-8";
  return static_cast<char32_t>(c);
}

void append_nfc(std::string_view text, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* result = nullptr;
  utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  CHECK(size >= 0) << utf8proc_errmsg(size);
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
  std::free(result);
}

}  // namespace

std::string utf8_lossy(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    Step step = next_step(bytes, at);
    out += step.valid ? bytes.substr(at, step.length) : "\xEF\xBF\xBD";
    at += step.length;
  }
  return out;
}

size_t unfinished_utf8(std::string_view bytes) {
  for (size_t back = std::min<size_t>(3, bytes.size()); back > 0; --back) {
    Step step = next_step(bytes, bytes.size() - back);
    if (step.unfinished && step.length == back) return back;
  }
  return 0;
}

std::string nfc(std::string_view text) {
  // Nothing below U+0300 (lead bytes up to 0xCB) combines or decomposes to something that is not itself in NFC.
  auto may_change = [](char c) { return static_cast<unsigned char>(c) >= 0xCC; };
  if (std::none_of(text.begin(), text.end(), may_change)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = next_step(text, at).length;
    if (length > 1 && is_inert(code_point(text, at))) {  // A starter that composes with nothing: text splits around it.
      append_nfc(text.substr(begin, at - begin), out);
      out += text.substr(at, length);
      begin = at + length;
    }
    at += length;
  }
  append_nfc(text.substr(begin), out);
  return out;
}

}  // namespace tritonrl
