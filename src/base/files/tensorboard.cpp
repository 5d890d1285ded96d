// SPDX-License-Identifier: Apache-2.0
#include "base/files/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>

namespace tritonrl {

namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

// Wire types of protobuf.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string key(uint64_t field, Wire wire) { return varint(field << 3 | wire); }
std::string bytes_field(uint64_t field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

std::string event(double wall_time, int64_t step, const std::string& what) {
  return key(1, kFixed64) + raw(wall_time) + key(2, kVarint) + varint(static_cast<uint64_t>(step)) + what;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

std::string tf_record(std::string_view data) {
  std::string length = raw(static_cast<uint64_t>(data.size()));
  return length + raw(masked_crc32c(length)) + std::string(data) + raw(masked_crc32c(data));
}

std::string version_event(double wall_time) { return event(wall_time, 0, bytes_field(3, "brain.Event:2")); }

std::string restart_event(double wall_time, int64_t step) {
  constexpr uint64_t kStart = 1;  // SessionLog.status.
  return event(wall_time, step, bytes_field(7, key(1, kVarint) + varint(kStart)));
}

std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary += bytes_field(1, bytes_field(1, tag) + key(2, kFixed32) + raw(static_cast<float>(value)));
  }
  return event(wall_time, step, bytes_field(5, summary));
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace tritonrl
