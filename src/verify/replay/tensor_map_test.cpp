// SPDX-License-Identifier: Apache-2.0
#include "verify/replay/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/text.h"
#include "verify/replay/tape.h"

namespace tritonrl::tensor_map_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Arg = TraceArg;

Arg integers(const std::vector<int64_t>& values) {
  Arg list;
  list.kind = Arg::Kind::kList;
  for (int64_t value : values) list.list.push_back({Arg::Kind::kInt, value, 0, "", {}});
  return list;
}

Arg argument(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int64_t padding = 0) {
  return {Arg::Kind::kDescriptor,
          0,
          0,
          "",
          {integers(shape),
           integers(strides),
           integers(std::vector<int64_t>(shape.size(), 16)),
           {Arg::Kind::kInt, padding, 0, "", {}}}};
}

Json metadata() {
  return {{"swizzle", 3}, {"elem_size", 2}, {"elem_type", 6}, {"block_size", {32, 64}}, {"fp4_padded", false}};
}

// "outcome: message", or "" when nothing is thrown.
template <class Fn>
std::string refusal(Fn fn) {
  try {
    fn();
  } catch (const ReplayFailure& failure) {
    EXPECT_FALSE(failure.context_lost);
    return cat(to_string(failure.finding.outcome()), ": ", human_text(failure.finding));
  }
  return "";
}

template <class T>
T number(const std::string& bytes) {
  EXPECT_EQ(bytes.size(), sizeof(T));
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

TEST(TensorMap, InnermostDimensionComesFirst) {
  auto parsed = tma_metadata(Json::array({metadata()}), 1);
  TensorMapRequest request = tensor_map_request(descriptor_of(argument({100, 200}, {208, 1}, 1)), *parsed.at(0), 2);
  EXPECT_EQ(request.rank, 2u);
  EXPECT_EQ(request.elem_type, 6);
  EXPECT_EQ(request.swizzle, 3);
  EXPECT_TRUE(request.pads_with_nan);
  EXPECT_THAT(request.dims, ElementsAre(200, 100, 0, 0, 0));
  EXPECT_THAT(request.strides, ElementsAre(416, 41600, 0, 0, 0));
  EXPECT_THAT(request.box, ElementsAre(64, 32, 0, 0, 0));
}

TEST(TensorMap, OfOneDimensionAndOfFive) {
  Json one = metadata();
  one["block_size"] = {64};
  TensorMapRequest request =
      tensor_map_request(descriptor_of(argument({7}, {1})), *tma_metadata(Json::array({one}), 1)[0], 2);
  EXPECT_EQ(request.rank, 1u);
  EXPECT_EQ(request.dims[0], 7u);
  EXPECT_EQ(request.strides[0], 14u);
  one["block_size"] = {1, 2, 3, 4, 8};
  request = tensor_map_request(descriptor_of(argument({2, 3, 4, 5, 8}, {480, 160, 40, 8, 1})),
                               *tma_metadata(Json::array({one}), 1)[0], 2);
  EXPECT_THAT(request.dims, ElementsAre(8, 5, 4, 3, 2));
  EXPECT_THAT(request.strides, ElementsAre(16, 80, 320, 960, 1920));
  EXPECT_THAT(request.box, ElementsAre(8, 4, 3, 2, 1));
}

// The device's numbers of three element types are not the driver's.
TEST(TensorMap, ElementTypesAreTheDrivers) {
  for (auto [device, driver] : std::vector<std::pair<int, int>>{{0, 0}, {7, 7}, {8, 10}, {9, 8}, {10, 9}, {11, 11}}) {
    Json json = metadata();
    json["elem_type"] = device;
    EXPECT_EQ(tma_metadata(Json::array({json}), 1)[0]->elem_type, driver);
  }
}

TEST(TensorMap, ParametersWithTma) {
  std::string map(128, 'm');
  auto bytes = descriptor_parameters(descriptor_of(argument({100, 200}, {208, 1})), 0x7000, &map);
  ASSERT_EQ(bytes.size(), 5u);
  EXPECT_EQ(bytes[0], map);
  EXPECT_EQ(number<int32_t>(bytes[1]), 100);
  EXPECT_EQ(number<int32_t>(bytes[2]), 200);
  EXPECT_EQ(number<int64_t>(bytes[3]), 208);
  EXPECT_EQ(number<int64_t>(bytes[4]), 1);
}

TEST(TensorMap, ParametersWithoutTma) {
  auto bytes = descriptor_parameters(descriptor_of(argument({100, 200}, {208, 1}, 1)), 0x7000, nullptr);
  ASSERT_EQ(bytes.size(), 10u);
  EXPECT_EQ(number<uint64_t>(bytes[0]), 0x7000u);
  EXPECT_EQ(number<int64_t>(bytes[1]), 100);
  EXPECT_EQ(number<int64_t>(bytes[2]), 200);
  EXPECT_EQ(number<int64_t>(bytes[3]), 208);
  EXPECT_EQ(number<int64_t>(bytes[4]), 1);
  EXPECT_EQ(number<int8_t>(bytes[5]), 1);
  EXPECT_EQ(number<int32_t>(bytes[6]), 100);
  EXPECT_EQ(number<int32_t>(bytes[7]), 200);
  EXPECT_EQ(number<int64_t>(bytes[8]), 208);
  EXPECT_EQ(number<int64_t>(bytes[9]), 1);
}

TEST(TensorMap, KernelsWithoutTmaHaveNoMetadata) {
  auto none = tma_metadata(Json::array(), 2);
  ASSERT_EQ(none.size(), 2u);
  EXPECT_FALSE(none[0] || none[1]);
}

TEST(TensorMap, MetadataIsNotBelieved) {
  auto changed = [](const char* key, Json value) {
    Json json = metadata();
    json[key] = std::move(value);
    return refusal([&] { tma_metadata(Json::array({json}), 1); });
  };
  EXPECT_EQ(refusal([] { tma_metadata(Json::array({metadata()}), 1); }), "");
  EXPECT_THAT(refusal([] { tma_metadata(Json::array({metadata()}), 2); }), HasSubstr("other descriptors"));
  EXPECT_THAT(refusal([] { tma_metadata(Json::object(), 0); }), HasSubstr("no list"));
  EXPECT_THAT(refusal([] { tma_metadata(Json::array({3}), 1); }), HasSubstr("no object"));
  for (const char* key : {"swizzle", "elem_size", "elem_type"}) {
    for (const Json& value : {Json(-1), Json(99), Json(1.5), Json("1"), Json(), Json(true), Json(UINT64_MAX)}) {
      EXPECT_THAT(changed(key, value), HasSubstr("tampered")) << key << " " << value;
    }
  }
  for (const Json& value : {Json(3), Json::array(), Json({1, 1, 1, 1, 1, 1}), Json({0}), Json({257}), Json({-1}),
                            Json({1.5}), Json({"a"}), Json({UINT64_MAX})}) {
    EXPECT_THAT(changed("block_size", value), HasSubstr("tampered")) << value;
  }
  EXPECT_THAT(changed("fp4_padded", 1), HasSubstr("tampered"));
  EXPECT_THAT(changed("fp4_padded", true), HasSubstr("unsupported"));
}

TEST(TensorMap, DescriptorsAreNotBelieved) {
  EXPECT_THAT(refusal([] { descriptor_of(Arg{}); }), HasSubstr("malformed"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({}, {})); }), HasSubstr("tampered"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1})); }), HasSubstr("tampered"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({4, 4}, {1})); }), HasSubstr("tampered"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({0, 4}, {4, 1})); }), HasSubstr("tampered"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({4, 4}, {4, 2})); }), HasSubstr("not contiguous"));
  EXPECT_THAT(refusal([] { descriptor_of(argument({int64_t{1} << 31}, {1})); }), HasSubstr("runtime_error"));
  Descriptor descriptor = descriptor_of(argument({4, 64}, {64, 1}));
  TmaMetadata parsed = *tma_metadata(Json::array({metadata()}), 1)[0];
  EXPECT_THAT(refusal([&] { tensor_map_request(descriptor, parsed, 4); }), HasSubstr("tampered"));
  EXPECT_THAT(refusal([&] { tensor_map_request(descriptor_of(argument({64}, {1})), parsed, 2); }),
              HasSubstr("another rank"));
  parsed.block = {32, 4};
  EXPECT_THAT(refusal([&] { tensor_map_request(descriptor, parsed, 2); }), HasSubstr("runtime_error"));
}

TEST(TensorMap, ADescriptorStaysInsideItsTensorsMemory) {
  auto reach = [](const Arg& arg, uint64_t address, int64_t bytes) {
    return refusal([&] { check_reach(descriptor_of(arg), 2, address, bytes); });
  };
  Arg whole = argument({4, 64}, {64, 1});
  EXPECT_EQ(reach(whole, 0x1000, 512), "");
  EXPECT_THAT(reach(whole, 0x1000, 511), HasSubstr("runtime_error: a descriptor reaches beyond"));
  EXPECT_THAT(reach(whole, 0x1008, 512), HasSubstr("16-byte aligned"));
  EXPECT_EQ(reach(argument({4, 60}, {64, 1}), 0x1000, 504), "");  // The last row ends early.
  EXPECT_THAT(reach(argument({4, 60}, {60, 1}), 0x1000, 512), HasSubstr("tampered"));
  EXPECT_EQ(reach(argument({4, 64}, {0, 1}), 0x1000, 128), "");  // One row, four times.
  EXPECT_THAT(reach(argument({2, 8}, {int64_t{1} << 40, 1}), 0x1000, INT64_MAX), HasSubstr("2^40"));
  Arg huge = argument({INT32_MAX, INT32_MAX, 1}, {(int64_t{1} << 39) - 8, (int64_t{1} << 39) - 8, 1});
  EXPECT_THAT(reach(huge, 0x1000, INT64_MAX), HasSubstr("beyond"));  // No sum overflows.
}

}  // namespace
}  // namespace tritonrl::tensor_map_test
