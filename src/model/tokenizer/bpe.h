// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding of one word: merges the best-ranked neighbours until none is left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tritonrl {

// Token text as tokenizer.json spells it: every byte is one printable character (GPT-2's table).
std::string byte_level_text(std::string_view bytes);
// The bytes a token stands for. A text with a character outside the table (an added token, say) stands for itself.
std::string byte_level_bytes(std::string_view text);

struct Merge {
  int32_t left = 0, right = 0, result = 0;  // Token ids. The rank is the position in the list.
};

class Bpe {
 public:
  // byte_ids[b]: the token of the single byte b, or -1 where the vocabulary has none.
  Bpe(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the ids of `word`. Bytes without a token are left out, as `tokenizers` does when there is no unknown token.
  // O(n log n), so a word of megabytes is no trap. Any thread.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;
  // The same from tokens that are there already, a character each.
  void merge(std::span<const int32_t> tokens, std::vector<int32_t>& ids) const;

 private:
  struct Slot {
    uint64_t pair = ~uint64_t{0};  // left << 32 | right; all ones = free.
    int32_t rank = 0, result = 0;
  };
  const Slot* find(int32_t left, int32_t right) const;

  std::array<int32_t, 256> byte_ids_;
  std::vector<Slot> slots_;  // Open addressing, at most half full.
  uint64_t mask_ = 0;
};

}  // namespace tritonrl
