// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte table and the merge loop.
#include "model/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "base/check.h"

namespace tritonrl {
namespace {

// Printable bytes stand for themselves, the others for U+0100, U+0101, ... in order.
struct ByteTable {
  std::array<std::string, 256> text;
  std::array<int, 0x200> byte;  // Code point -> byte, or -1.

  ByteTable() {
    byte.fill(-1);
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      unsigned c = printable ? b : next++;
      byte[c] = static_cast<int>(b);
      if (c < 0x80) {
        text[b] += static_cast<char>(c);
      } else {
        text[b] += static_cast<char>(0xc0 | c >> 6);
        text[b] += static_cast<char>(0x80 | (c & 0x3f));
      }
    }
  }
};

const ByteTable& byte_table() {
  static const ByteTable table;
  return table;
}

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t spread(uint64_t pair) {
  pair *= 0x9e3779b97f4a7c15ull;
  return pair ^ pair >> 29;
}

struct Symbol {
  int32_t id = -1;  // -1 = merged into the symbol on its left.
  int32_t previous = -1, next = -1;
};

struct Candidate {
  int32_t rank, position, result;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

std::string byte_level_text(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += byte_table().text[static_cast<unsigned char>(c)];
  return out;
}

std::string byte_level_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      if (c < 0xc2 || c > 0xc7 || i + 1 >= text.size()) return std::string(text);  // Not in U+0080..U+01FF.
      c = (c & 0x1f) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f);
    }
    if (c >= byte_table().byte.size() || byte_table().byte[c] < 0) return std::string(text);
    out += static_cast<char>(byte_table().byte[c]);
  }
  return out;
}

Bpe::Bpe(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges) : byte_ids_(byte_ids) {
  slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  mask_ = slots_.size() - 1;
  int32_t rank = 0;
  for (const Merge& merge : merges) {
    uint64_t pair = pair_of(merge.left, merge.right), at = spread(pair) & mask_;
    while (slots_[at].pair != ~uint64_t{0} && slots_[at].pair != pair) at = (at + 1) & mask_;
    slots_[at] = {pair, rank++, merge.result};  // Of a merge listed twice the last one counts, as in `tokenizers`.
  }
}

const Bpe::Slot* Bpe::find(int32_t left, int32_t right) const {
  uint64_t pair = pair_of(left, right);
  for (uint64_t at = spread(pair) & mask_;; at = (at + 1) & mask_) {
    if (slots_[at].pair == pair) return &slots_[at];
    if (slots_[at].pair == ~uint64_t{0}) return nullptr;
  }
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids) const {
  thread_local std::vector<int32_t> tokens;
  tokens.clear();
  for (char c : word) {
    int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) tokens.push_back(id);
  }
  merge(tokens, ids);
}

void Bpe::merge(std::span<const int32_t> tokens, std::vector<int32_t>& ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(tokens.size());
  for (int32_t id : tokens) {
    auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(), std::move(storage));
  auto propose = [&](int32_t position) {
    if (position < 0 || symbols[position].next < 0) return;
    const Slot* slot = find(symbols[position].id, symbols[symbols[position].next].id);
    if (slot != nullptr) queue.push({slot->rank, position, slot->result});
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) propose(static_cast<int32_t>(i));
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.position];
    if (left.id < 0 || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    const Slot* slot = find(left.id, right.id);
    if (slot == nullptr || slot->result != best.result) continue;  // Out of date: a neighbour has changed since.
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
  for (int32_t at = 0; at >= 0; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace tritonrl
