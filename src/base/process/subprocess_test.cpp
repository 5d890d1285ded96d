// SPDX-License-Identifier: Apache-2.0
#include "base/process/subprocess.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace tritonrl::subprocess_test {
namespace {

TEST(Subprocess, ReadsWhatItPrints) {
  std::string input(300'000, 'x');  // More than a pipe holds.
  Subprocess cat({"/bin/cat"}, input);
  EXPECT_EQ(cat.read_all(), input);
  EXPECT_EQ(cat.wait(), 0);
  Subprocess nothing({"/bin/cat"});
  EXPECT_EQ(nothing.read_all(), "");
}

TEST(Subprocess, SaysHowItEnded) {
  EXPECT_EQ(Subprocess({"/bin/sh", "-c", "exit 7"}).wait(), 7);
  EXPECT_EQ(Subprocess({"/bin/sh", "-c", "kill -ALRM $$"}).wait(), -SIGALRM);
  EXPECT_THROW(Subprocess({"/nowhere/such"}), Error);
}

TEST(Subprocess, EndsWithItsObject) {
  int output = -1;
  {
    Subprocess endless({"/bin/sh", "-c", "echo started; exec sleep 1000"});
    output = endless.take_output();
    char first = 0;
    ASSERT_EQ(::read(output, &first, 1), 1);
  }
  char buffer[100];
  EXPECT_EQ(::read(output, buffer, sizeof buffer), 7);  // "tarted\n"
  EXPECT_EQ(::read(output, buffer, sizeof buffer), 0) << "nobody holds the other end";
  ::close(output);
}

TEST(Subprocess, NamesAPackageThatIsMissing) { EXPECT_THROW(unpacked_package("no-such-package"), Error); }

}  // namespace
}  // namespace tritonrl::subprocess_test
