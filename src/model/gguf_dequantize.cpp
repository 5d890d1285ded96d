// SPDX-License-Identifier: Apache-2.0
// Block formats of GGML, turned into floats.
//
// A half times a small integer is exact in float (11 + 6 + 6 bits at most for the K types), so each value is rounded at
// most once and fused multiply-add cannot change it.
#include <algorithm>

#include "base/check.h"
#include "model/dtype.h"
#include "model/gguf.h"

namespace tritonrl {
namespace {

constexpr GgufTypeInfo kTypes[] = {
    {GgufType::kF32, "F32", 1, 4},       {GgufType::kF16, "F16", 1, 2},     {GgufType::kBF16, "BF16", 1, 2},
    {GgufType::kQ4_0, "Q4_0", 32, 18},   {GgufType::kQ4_1, "Q4_1", 32, 20}, {GgufType::kQ5_0, "Q5_0", 32, 22},
    {GgufType::kQ5_1, "Q5_1", 32, 24},   {GgufType::kQ8_0, "Q8_0", 32, 34}, {GgufType::kQ4_K, "Q4_K", 256, 144},
    {GgufType::kQ6_K, "Q6_K", 256, 210},
};

int byte_at(const std::byte* block, size_t i) { return std::to_integer<int>(block[i]); }
int signed_at(const std::byte* block, size_t i) { return static_cast<int8_t>(std::to_integer<uint8_t>(block[i])); }
float half_at(const std::byte* block, size_t i) { return float_from_f16(load_le<uint16_t>(block + i)); }

// Low nibbles are values 0-15 of a block of 32, high nibbles 16-31.
int nibble(const std::byte* packed, int i) { return i < 16 ? byte_at(packed, i) & 15 : byte_at(packed, i - 16) >> 4; }

void block_q4_0(const std::byte* b, float* out) {
  float d = half_at(b, 0);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(b + 2, i) - 8);
}

void block_q4_1(const std::byte* b, float* out) {
  float d = half_at(b, 0), m = half_at(b, 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
}

void block_q5_0(const std::byte* b, float* out) {
  float d = half_at(b, 0);
  auto high = load_le<uint32_t>(b + 2);  // Fifth bits.
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>((nibble(b + 6, i) | ((high >> i & 1) << 4)) - 16.0f);
}

void block_q5_1(const std::byte* b, float* out) {
  float d = half_at(b, 0), m = half_at(b, 2);
  auto high = load_le<uint32_t>(b + 4);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(b + 8, i) | ((high >> i & 1) << 4)) + m;
}

void block_q8_0(const std::byte* b, float* out) {
  float d = half_at(b, 0);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(signed_at(b, 2 + i));
}

// 8 groups of 32 with 6-bit scales and minimums in 12 bytes: groups 0-3 lie whole in the first 8 bytes; of groups 4-7
// the low nibbles are in the last 4 and the top two bits are borrowed from the first 8.
void block_q4_k(const std::byte* b, float* out) {
  float d = half_at(b, 0), d_min = half_at(b, 2);
  const std::byte *s = b + 4, *q = b + 16;
  for (int group = 0; group < 8; ++group) {
    int scale = 0, minimum = 0;
    if (group < 4) {
      scale = byte_at(s, group) & 63;
      minimum = byte_at(s, group + 4) & 63;
    } else {
      scale = (byte_at(s, group + 4) & 15) | (byte_at(s, group - 4) >> 6 << 4);
      minimum = (byte_at(s, group + 4) >> 4) | (byte_at(s, group) >> 6 << 4);
    }
    float step = d * static_cast<float>(scale), base = d_min * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      int packed = byte_at(q, group / 2 * 32 + i);
      int value = group % 2 == 0 ? packed & 15 : packed >> 4;
      out[group * 32 + i] = step * static_cast<float>(value) - base;
    }
  }
}

// Two halves of 128; in each, 4 rows of 32 share 64 bytes of low nibbles and 32 bytes of top bits; a scale per 16.
void block_q6_k(const std::byte* b, float* out) {
  const std::byte *low = b, *high = b + 128, *scales = b + 192;
  float d = half_at(b, 208);
  for (int half = 0; half < 2; ++half) {
    for (int row = 0; row < 4; ++row) {
      for (int i = 0; i < 32; ++i) {
        int packed = byte_at(low, half * 64 + row % 2 * 32 + i);
        int top = byte_at(high, half * 32 + i) >> (2 * row) & 3;
        int value = ((row < 2 ? packed & 15 : packed >> 4) | top << 4) - 32;
        float step = d * static_cast<float>(signed_at(scales, half * 8 + row * 2 + i / 16));
        out[half * 128 + row * 32 + i] = step * static_cast<float>(value);
      }
    }
  }
}

}  // namespace

const GgufTypeInfo* gguf_type_info(uint32_t type) {
  auto it = std::find_if(std::begin(kTypes), std::end(kTypes),
                         [&](const GgufTypeInfo& info) { return static_cast<uint32_t>(info.type) == type; });
  return it == std::end(kTypes) ? nullptr : it;
}

void dequantize(GgufType type, const std::byte* blocks, size_t elements, float* out) {
  const GgufTypeInfo* info = gguf_type_info(static_cast<uint32_t>(type));
  CHECK(info != nullptr && elements % info->block_elements == 0) << elements << " elements";
  for (size_t i = 0; i < elements;
       i += info->block_elements, blocks += info->block_bytes, out += info->block_elements) {
    switch (type) {
      case GgufType::kF32:
        *out = load_le<float>(blocks);
        break;
      case GgufType::kF16:
        *out = float_from_f16(load_le<uint16_t>(blocks));
        break;
      case GgufType::kBF16:
        *out = float_from_bf16(load_le<uint16_t>(blocks));
        break;
      case GgufType::kQ4_0:
        block_q4_0(blocks, out);
        break;
      case GgufType::kQ4_1:
        block_q4_1(blocks, out);
        break;
      case GgufType::kQ5_0:
        block_q5_0(blocks, out);
        break;
      case GgufType::kQ5_1:
        block_q5_1(blocks, out);
        break;
      case GgufType::kQ8_0:
        block_q8_0(blocks, out);
        break;
      case GgufType::kQ4_K:
        block_q4_k(blocks, out);
        break;
      case GgufType::kQ6_K:
        block_q6_k(blocks, out);
        break;
    }
  }
}

}  // namespace tritonrl
