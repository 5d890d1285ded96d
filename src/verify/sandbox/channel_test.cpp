// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/channel.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tritonrl::channel_test {
namespace {

std::unique_ptr<Channel> shell(const std::string& script) { return Channel::start({"/bin/sh", "-c", script}); }

std::optional<Channel::End> end_of(const std::string& script) {
  auto helper = shell(script);
  ChannelMessage message;
  EXPECT_EQ(helper->receive(&message, 20), Channel::Answer::kGone) << script;
  return helper->ended(20);
}

TEST(Channel, TellsHowItsHelperEnded) {
  for (int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGTERM}) {
    auto end = end_of("ulimit -c 0; kill -" + std::to_string(signal) + " $$");
    ASSERT_TRUE(end.has_value()) << signal;
    EXPECT_EQ(end->signal, signal);
  }
  for (int code : {0, 7}) {
    auto end = end_of("exit " + std::to_string(code));
    ASSERT_TRUE(end.has_value()) << code;
    EXPECT_EQ(end->signal, 0);
    EXPECT_EQ(end->exit_code, code);
  }
}

TEST(Channel, AHelperThatHungUpAndLivesOnHasNotEnded) {
  auto helper = shell("exec 3>&-; exec sleep 60");
  ChannelMessage message;
  ASSERT_EQ(helper->receive(&message, 20), Channel::Answer::kGone);
  EXPECT_FALSE(helper->ended(0.05).has_value());
  helper->kill();
  EXPECT_FALSE(helper->ended(0.05).has_value()) << "it is reaped, and its id may be another's";
}

}  // namespace
}  // namespace tritonrl::channel_test
