// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/own_time.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace tritonrl::own_time_test {
namespace {

TEST(OwnTime, JobsFollowEachOtherAndKernelsAreBesideEachOther) {
  OwnTime own;
  EXPECT_FALSE(own.charged());
  EXPECT_EQ(own.seconds(), 0);
  own.add(2);
  own.add(3);
  EXPECT_EQ(own.seconds(), 5);
  for (int i = 0; i < 24; ++i) own.add(1, cat("quick ", i));
  EXPECT_EQ(own.seconds(), 5 + 3) << "24 kernels, eight at a time";
  own.add(10, "slow");
  EXPECT_EQ(own.seconds(), 5 + 10) << "the longest";
  own.add(7, "slow");
  EXPECT_EQ(own.of_kernel("slow"), 10) << "a kernel is charged once";
  EXPECT_EQ(own.of_kernel("never seen"), 0);
  EXPECT_TRUE(own.charged());
  EXPECT_FALSE(own.over());
  EXPECT_EQ(own.left(), OwnTime::kNoLimit);
}

TEST(OwnTime, LeavesWhatIsAllowed) {
  OwnTime own(10);
  own.add(2.5);
  EXPECT_EQ(own.left(), 7.5);
  own.add(4, "kernel");
  EXPECT_EQ(own.left(), 3.5);
  EXPECT_EQ(own.left(true), 7.5) << "kernels do not wait for each other";
  own.add(3.5, "another");
  EXPECT_FALSE(own.over());
  for (int i = 0; i < 7; ++i) own.add(7, cat("many ", i));
  EXPECT_EQ(own.left(true), 8 * 7.5 - 56.5) << "and together they have eight processors";
  own.add(7.4);
  EXPECT_EQ(own.left(), 0);
  EXPECT_TRUE(own.over());
  EXPECT_EQ(own.finding().rule(), Rule::kLate);
  EXPECT_EQ(human_text(own.finding()), "it takes more than the 10.0 s of its own time that others' times allow");
  EXPECT_EQ(policy_text(own.finding().told), says(Rule::kLate)) << "how long it took is not for the policy";
}

TEST(OwnTime, ADeadlineCountsFromWhenItIsSet) {
  OwnTime own(10);
  own.add(3);
  own.set_deadline(4);
  own.add(3);
  EXPECT_EQ(own.left(), 1);
  EXPECT_FALSE(own.over());
  own.set_deadline(2);
  own.add(1.5);
  EXPECT_EQ(own.left(), 0.5);
  own.add(1);
  EXPECT_TRUE(own.over());
  EXPECT_EQ(own.finding().rule(), Rule::kDeadline);
  EXPECT_EQ(human_text(own.finding()), "not finished after 2.0 s");
  own.set_deadline(100);
  EXPECT_EQ(own.left(), 1.5) << "the other limit still holds";
  own.add(2);
  EXPECT_EQ(own.finding().rule(), Rule::kLate);
}

}  // namespace
}  // namespace tritonrl::own_time_test
