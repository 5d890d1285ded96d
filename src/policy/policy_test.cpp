// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl {
namespace {

std::string complaint(const PolicyConfig& config) {
  try {
    config.validate();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "";
}

TEST(PolicyConfig, GroupsAreForAnInt8BaseAndMultiplesOfEight) {
  PolicyConfig config;
  EXPECT_EQ(complaint(config), "");
  config.int8_group = 64;
  EXPECT_THAT(complaint(config), testing::HasSubstr("base: int8"));
  config.base = "int8";
  EXPECT_EQ(complaint(config), "");
  for (int64_t group : {-64, 4, 63}) {
    config.int8_group = group;
    EXPECT_THAT(complaint(config), testing::HasSubstr("int8_group")) << group;
  }
}

}  // namespace
}  // namespace tritonrl
