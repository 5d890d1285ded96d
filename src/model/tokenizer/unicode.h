// SPDX-License-Identifier: Apache-2.0
// UTF-8 and Unicode normalisation exactly as the `tokenizers` library has them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tritonrl {

// Valid UTF-8: each maximal run of bytes that could have begun a character becomes one U+FFFD (Python's
// decode("utf-8", "replace") and Rust's from_utf8_lossy; valid_utf8 of base/text.h replaces byte by byte instead).
std::string utf8_lossy(std::string_view bytes);

// Number of bytes at the end of `bytes` that are a character's valid but unfinished beginning: 0 to 3.
size_t unfinished_utf8(std::string_view bytes);

// Normalisation form C, as of the Unicode tables in `tokenizers` 0.22: marks that are newer than those stay where they
// are. REQUIRES: valid UTF-8.
std::string nfc(std::string_view text);

}  // namespace tritonrl
