// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tritonrl {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

namespace {

uint64_t block64(uint64_t key, uint64_t low, uint64_t high) {
  auto out = philox({static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
                     static_cast<uint32_t>(high >> 32)},
                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  return uint64_t{out[1]} << 32 | out[0];
}

constexpr uint64_t kDraws = 0, kStreams = 1;  // High counter word: draws and derived keys never meet.

}  // namespace

Rng Rng::at(uint64_t id) const { return Rng(block64(key_, id, kStreams)); }

Rng Rng::at(std::string_view name) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a.
  for (unsigned char byte : name) hash = (hash ^ byte) * 0x100000001b3;
  return at(hash);
}

uint64_t Rng::next_u64() { return block64(key_, counter_++, kDraws); }

double Rng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

int64_t Rng::below(int64_t n) {
  CHECK(n > 0) << "Rng::below(" << n << ")";
  uint64_t range = static_cast<uint64_t>(n), limit = UINT64_MAX - UINT64_MAX % range;
  uint64_t value = next_u64();
  while (value >= limit) value = next_u64();
  return static_cast<int64_t>(value % range);
}

double Rng::normal() {
  double u = 1.0 - uniform(), v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

Rng Rng::restore(uint64_t key, uint64_t counter) {
  Rng rng(key);
  rng.counter_ = counter;
  return rng;
}

}  // namespace tritonrl
