// SPDX-License-Identifier: Apache-2.0
#include "base/process/background_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/json.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl::background_commands_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class Background : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "background_commands_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string log() const { return fs::exists(folder_ / "log") ? read_file(folder_ / "log") : ""; }

  fs::path folder_;
};

TEST_F(Background, RunOneAfterTheOtherAndHoldNobodyUp) {
  std::vector<std::string> ended;
  BackgroundCommands commands(folder_ / "log", [&](const BackgroundCommand& command, int code, double) {
    ended.push_back(cat(command.name, " ", code));
  });
  double start = now_s();
  commands.add({"slow", "sleep 0.4; echo one $WHO; echo aside >&2", {{"WHO", "first"}}});
  commands.add({"bad", "echo two; exit 3", {}});
  commands.add({"killed", "kill -9 $$", {}});
  EXPECT_LT(now_s() - start, 0.3);
  EXPECT_THAT(commands.unfinished(), ElementsAre("slow", "bad", "killed"));
  EXPECT_TRUE(commands.finish(20).empty());
  EXPECT_EQ(log(), "one first\naside\ntwo\n");
  EXPECT_THAT(ended, ElementsAre("slow 0", "bad 3", "killed 137"));
  EXPECT_TRUE(commands.unfinished().empty());
}

TEST_F(Background, TheEnvironmentIsOursAndWhatIsGiven) {
  ::setenv("TRITONRL_TEST_ONE", "old", 1);
  ::setenv("TRITONRL_TEST_TWO", "kept", 1);
  BackgroundCommands commands(folder_ / "log");
  commands.add({"a", "echo $TRITONRL_TEST_ONE $TRITONRL_TEST_TWO", {{"TRITONRL_TEST_ONE", "new  = \"x\""}}});
  EXPECT_TRUE(commands.finish(20).empty());
  EXPECT_EQ(log(), "new = \"x\" kept\n");
}

TEST_F(Background, TimeUpEndsWhatRunsWithItsChildrenAndDropsTheRest) {
  int ended = 0;
  double start = now_s();
  {
    BackgroundCommands commands(folder_ / "log", [&](const BackgroundCommand&, int, double) { ++ended; });
    // Deaf to SIGTERM, and so is its child.
    commands.add({"deaf", "trap '' TERM; echo begun; (sleep 3; echo child) & sleep 3; echo late", {}});
    commands.add({"never", "echo never", {}});
    while (log().empty() && now_s() - start < 20) ::usleep(10000);
    EXPECT_THAT(commands.finish(0.2), ElementsAre("deaf", "never"));
    commands.add({"after the end", "echo never", {}});
  }
  EXPECT_LT(now_s() - start, 2.8);
  ::usleep(3200000);  // Would the child have lived, it would have spoken by now.
  EXPECT_EQ(log(), "begun\n");
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace tritonrl::background_commands_test
