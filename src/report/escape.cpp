// SPDX-License-Identifier: Apache-2.0
// Hostile text made harmless.
#include <cctype>

#include "base/text.h"
#include "report/layout.h"

namespace tritonrl::reporting {

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
