// SPDX-License-Identifier: Apache-2.0
// Small string helpers that need no formatting library (torch's headers carry a second fmt, so ours stays out of them).
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tritonrl {

// Concatenates anything that can be streamed: cat("step ", 3, "/", 40).
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

std::string fixed(double value, int digits);  // fixed(0.1234, 2) == "0.12"
std::string human_bytes(double bytes);        // "1.5 GiB"
std::string human_seconds(double seconds);    // "2 m 05 s"
std::string trim(std::string_view text);      // Without leading and trailing white space.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// Number of single-character insertions, deletions and substitutions between a and b.
int edit_distance(std::string_view a, std::string_view b);

// The element of `known` closest to `word`, or "" when none is within a third of its length (at least 2 edits).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Text with every byte sequence that is not valid UTF-8 replaced by U+FFFD, so that it may go into JSON.
std::string valid_utf8(std::string_view bytes);

// Valid UTF-8 that shows what it is, for terminals, logs and pages: control characters other than tab and newline,
// marks of direction, invisible and non-characters become "[U+001B]". A newline behind a carriage return stays alone.
std::string printable(std::string_view bytes);

// 128-bit content hash (XXH3) as 32 hex digits. Not cryptographic: identifies our own content, guards nothing hostile.
std::string content_hash(std::string_view bytes);

}  // namespace tritonrl
