// SPDX-License-Identifier: Apache-2.0
// ByteReader: reads little-endian fields off hostile bytes, front to back (the encoding of docs/trace.md).
//
// Every call either gives what it says or throws Tainted: nothing is read beyond the end, and a count is refused when
// the bytes that are left could not hold that many items, so that no memory is taken for a lie. Views point into the
// bytes, which must outlive them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "verify/sandbox/blob.h"

namespace tritonrl {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t u8() { return fixed_width<uint8_t>(); }
  uint32_t u32() { return fixed_width<uint32_t>(); }
  uint64_t u64() { return fixed_width<uint64_t>(); }
  int64_t i64() { return fixed_width<int64_t>(); }
  double f64() { return fixed_width<double>(); }

  // A tag, a flag byte or a small number below `end`.
  uint8_t below(uint8_t end, const char* what) {
    uint8_t value = u8();
    if (value >= end) throw Tainted{cat("an unknown kind of ", what)};
    return value;
  }
  bool yes_or_no() { return below(2, "flag") != 0; }

  // A number within [low, high], from `u32` or `u64` bytes.
  int64_t small(const char* what, int64_t low, int64_t high) { return within(u32(), what, low, high); }
  int64_t large(const char* what, int64_t low, int64_t high) { return within(u64(), what, low, high); }

  // The count of a list whose items take at least `item_bytes` each.
  size_t count(const char* what, size_t most, size_t item_bytes) {
    size_t n = u32();
    if (n > most) throw Tainted{cat("more than ", most, " ", what)};
    if (n > left() / item_bytes) throw Tainted{cat("the trace ends amid its ", what)};
    return n;
  }

  std::string_view raw(uint64_t n) {
    if (n > left()) throw Tainted{"the trace is cut short"};
    std::string_view out = bytes_.substr(at_, static_cast<size_t>(n));
    at_ += static_cast<size_t>(n);
    return out;
  }

  // A `str` of at most `most` bytes.
  std::string text(const char* what, size_t most) {
    uint32_t n = u32();
    if (n > most) throw Tainted{cat(what, " is longer than ", most, " bytes")};
    std::string_view view = raw(n);
    std::string out = valid_utf8(view);
    if (out != view) throw Tainted{cat(what, " is not UTF-8")};
    return out;
  }

  size_t left() const { return bytes_.size() - at_; }

 private:
  template <class T>
  T fixed_width() {
    T value;
    std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    return value;
  }
  static int64_t within(uint64_t value, const char* what, int64_t low, int64_t high) {
    if (value > static_cast<uint64_t>(high) || static_cast<int64_t>(value) < low) {
      throw Tainted{cat(what, " is out of range")};
    }
    return static_cast<int64_t>(value);
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace tritonrl
