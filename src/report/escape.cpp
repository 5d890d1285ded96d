// SPDX-License-Identifier: Apache-2.0
// Hostile text made harmless.
#include <cctype>
#include <cstdio>

#include "base/text.h"
#include "report/layout.h"

namespace tritonrl::reporting {

namespace {

// Marks, overrides and isolates of the bidirectional algorithm, and the two Unicode line separators.
bool is_trick(uint32_t c) {
  return c == 0x061C || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) ||
         c == 0xFEFF;
}

bool is_control(uint32_t c) { return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c <= 0x9F); }

// Not allowed in a page even as a character reference.
bool is_noncharacter(uint32_t c) { return (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE; }

std::string code_point_name(uint32_t c) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "[U+%04X]", c);
  return buffer;
}

}  // namespace

std::string printable(std::string_view raw) {
  std::string text = valid_utf8(raw), out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t c = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      // A Windows line end: the '\n' is enough.
    } else if (is_trick(c) || is_control(c) || is_noncharacter(c)) {
      out += code_point_name(c);
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view raw) {
  std::string text = printable(raw), out;
  auto is_word = [&](size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])); };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (std::string_view("\\`*[]|~#").find(c) != std::string_view::npos ||
               (c == '_' && !(i > 0 && is_word(i - 1) && is_word(i + 1)))) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tritonrl::reporting
