// SPDX-License-Identifier: Apache-2.0
// UTF-8 repair on cases from the Unicode standard; NFC over every code point against `tokenizers`.
#include "model/tokenizer/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"

namespace tritonrl::unicode_test {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

std::string utf8(char32_t c) {
  char encoded[4];
  auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), reinterpret_cast<utf8proc_uint8_t*>(encoded));
  return std::string(encoded, static_cast<size_t>(length));
}

TEST(Unicode, ReplacesMaximalSubparts) {
  EXPECT_EQ(utf8_lossy("a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80"), "a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80");
  EXPECT_EQ(utf8_lossy("\xE4\xBDx"), kBad + "x") << "two bytes that began a character are one replacement";
  EXPECT_EQ(utf8_lossy("\xF0\x9F\x98"), kBad);
  EXPECT_EQ(utf8_lossy("\x80\xBF"), kBad + kBad);
  EXPECT_EQ(utf8_lossy("\xC0\xAF"), kBad + kBad) << "overlong";
  EXPECT_EQ(utf8_lossy("\xE0\x80\xAF"), kBad + kBad + kBad) << "overlong";
  EXPECT_EQ(utf8_lossy("\xED\xA0\x80"), kBad + kBad + kBad) << "a surrogate";
  EXPECT_EQ(utf8_lossy("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad) << "beyond U+10FFFF";
  EXPECT_EQ(utf8_lossy("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF");
  EXPECT_EQ(utf8_lossy(std::string("\0a", 2)), std::string("\0a", 2));
}

TEST(Unicode, FindsUnfinishedCharacters) {
  EXPECT_EQ(unfinished_utf8(""), 0u);
  EXPECT_EQ(unfinished_utf8("abc"), 0u);
  EXPECT_EQ(unfinished_utf8("a\xC3"), 1u);
  EXPECT_EQ(unfinished_utf8("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(unfinished_utf8("\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(unfinished_utf8("\xE0\x80"), 0u) << "can no longer become a character";
  EXPECT_EQ(unfinished_utf8("\xBF\xBF"), 0u);
  EXPECT_EQ(unfinished_utf8("\xE4\xE4\xBD"), 2u);
}

TEST(Unicode, ComposesLikeTokenizersForEveryCodePoint) {
  Json golden = read_json(source_dir() + "/tests/golden/tokenizer/unicode.json");
  const Json& blocks = golden["nfc_fnv1a"];
  ASSERT_EQ(blocks.size(), 0x110u);
  for (char32_t block = 0; block < 0x110; ++block) {
    uint64_t state = 0xcbf29ce484222325;
    auto add = [&](const std::string& text) {
      for (char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    };
    for (char32_t c = block << 12; c < (block + 1) << 12; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      add(nfc("a\xCD\x85" + utf8(c) + "\xCC\xB4"));  // U+0345 (class 240) before, U+0334 (class 1) after.
      add(nfc(utf8(c) + "\xCC\x81"));                // U+0301.
    }
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(state));
    EXPECT_EQ(hex, blocks[block]) << "code points from " << (block << 12);
  }
}

}  // namespace
}  // namespace tritonrl::unicode_test
