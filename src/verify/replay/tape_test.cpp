// SPDX-License-Identifier: Apache-2.0
// Arguments of a launch against the signature of its kernel: tuples, however deep, and those that do not fit.
#include "verify/replay/tape.h"

#include <gtest/gtest.h>

#include <optional>

#include "verify/replay/driver.h"

namespace tritonrl {
namespace {

using Kind = TraceArg::Kind;

TraceArg of_kind(Kind kind, int64_t number = 0) {
  TraceArg arg;
  arg.kind = kind;
  arg.number = number;
  return arg;
}

TraceArg tuple(std::vector<TraceArg> items) {
  TraceArg arg = of_kind(Kind::kList);
  arg.list = std::move(items);
  return arg;
}

std::string taken(const TraceArg& arg, const std::string& type) {
  std::string out;
  for (const TypedArgument& each : taken_apart(arg, type))
    out += each.type + "=" + std::to_string(each.value->number) + " ";
  return out;
}

std::optional<Rule> rule_of(const TraceArg& arg, const std::string& type) {
  try {
    taken_apart(arg, type);
  } catch (const ReplayFailure& failure) {
    return failure.finding.rule();
  }
  return {};
}

TEST(TapeLaunch, TuplesAreTakenApart) {
  const TraceArg x = of_kind(Kind::kTensor, 3), y = of_kind(Kind::kTensor, 4), one = of_kind(Kind::kInt, 1);
  EXPECT_EQ(taken(x, "*fp32"), "*fp32=3 ");
  EXPECT_EQ(taken(tuple({x, y}), "(*fp32;*fp16)"), "*fp32=3 *fp16=4 ");
  EXPECT_EQ(taken(tuple({tuple({x, y}), one}), "((*fp32;*fp32);constexpr)"), "*fp32=3 *fp32=4 constexpr=1 ");
  EXPECT_EQ(taken(tuple({one, tuple({tuple({y}), x})}), "(i32;((*fp32);*fp32))"), "i32=1 *fp32=4 *fp32=3 ");
  EXPECT_EQ(taken(tuple({}), "()"), "");
  EXPECT_EQ(taken(tuple({one, one}), "constexpr"), "constexpr=0 ") << "a constant is the compiler's matter";
}

TEST(Launching, WhatWasCompiledForAnotherGpuIsOurFault) {
  std::string image(64, 0);
  image.replace(0, 5,
                "\x7f"
                "ELF\x02");
  image[8] = 7;
  image[0x30] = 0x50;  // sm_80.
  EXPECT_NO_THROW(check_architecture(image, 80));
  EXPECT_NO_THROW(check_architecture("no cubin", 90)) << "the driver will say it";
  try {
    check_architecture(image, 90);
    FAIL();
  } catch (const ReplayFailure& failure) {
    EXPECT_EQ(failure.finding.outcome(), Outcome::kHarnessFault);
    EXPECT_FALSE(failure.context_lost);
  }
}

TEST(TapeLaunch, ATupleIsAsItsKernelHasIt) {
  const TraceArg x = of_kind(Kind::kTensor, 3), pair = tuple({x, x});
  EXPECT_EQ(rule_of(x, "(*fp32)"), Rule::kForgedResult);
  EXPECT_EQ(rule_of(pair, "(*fp32)"), Rule::kForgedResult);
  EXPECT_EQ(rule_of(pair, "(*fp32;*fp32;*fp32)"), Rule::kForgedResult);
  EXPECT_EQ(rule_of(pair, "()"), Rule::kForgedResult);
  EXPECT_EQ(rule_of(pair, "(*fp32;*fp32"), Rule::kForgedResult);
  EXPECT_EQ(rule_of(tuple({x}), "(tensordesc<fp16[64,64]>)"), Rule::kNotReplayable);
}

}  // namespace
}  // namespace tritonrl
