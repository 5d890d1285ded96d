// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl::task_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSource[] =
    "class Model:\n    def forward(self, x):\n        return x\ndef get_inputs():\n    return []\n"
    "def get_init_inputs():\n    return []\n";

class TaskFile : public testing::Test {
 protected:
  TaskFile() {
    fs::create_directories(folder_);
    std::vector<Task> tasks;
    for (int i = 0; i < 12; ++i) {
      Task task;
      task.id = cat("t", i);
      task.level = 1 + i % 3;
      task.source = kSource;
      if (i == 0) task.flags = {"constant"};
      tasks.push_back(task);
    }
    config_.file = (folder_ / "tasks.jsonl").string();
    save_tasks(config_.file, tasks);
  }
  ~TaskFile() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / cat("task_file_test_", ::getpid());
  TaskFileConfig config_;
};

std::vector<std::string> ids(const std::vector<Task>& tasks) {
  std::vector<std::string> out;
  for (const Task& task : tasks) out.push_back(task.id);
  return out;
}

TEST_F(TaskFile, FlaggedTasksAreLeftOutUnlessAskedFor) {
  EXPECT_EQ(select_tasks(config_, "data.train").size(), 11u);
  config_.keep_flagged = true;
  EXPECT_EQ(select_tasks(config_, "data.train").size(), 12u);
}

TEST_F(TaskFile, SelectionIsByLevelAndSeedAndKeepsTheOrder) {
  config_.select = {2, 3, 0, 0};
  auto one = select_tasks(config_, "data.train");
  ASSERT_EQ(one.size(), 5u);
  EXPECT_EQ(std::count_if(one.begin(), one.end(), [](const Task& t) { return t.level == 1; }), 2);
  EXPECT_EQ(ids(select_tasks(config_, "data.train")), ids(one));
  bool differs = false;
  for (config_.seed = 8; config_.seed < 14; ++config_.seed) differs |= ids(select_tasks(config_, "x")) != ids(one);
  EXPECT_TRUE(differs);
}

TEST_F(TaskFile, TooFewTasksAreAnError) {
  config_.select = {4, 0, 0, 0};  // One of the four is flagged.
  try {
    select_tasks(config_, "data.train");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("data.train wants 4"), HasSubstr("there are 3"),
                                             HasSubstr("1 of all levels are flagged")));
  }
}

TEST_F(TaskFile, IdsComeInTheOrderOfTheList) {
  write_file(folder_ / "ids.txt", "# two\nt7\n\n  t3  # the second\n");
  EXPECT_THAT(ids(tasks_of_ids(load_tasks(config_.file), folder_ / "ids.txt")), ElementsAre("t7", "t3"));
  write_file(folder_ / "ids.txt", "t7\nt99\n");
  EXPECT_THROW(tasks_of_ids(load_tasks(config_.file), folder_ / "ids.txt"), Error);
}

TEST_F(TaskFile, ConfigIsOneLine) {
  write_file(folder_ / "c.yaml", "file: a.jsonl\nselect: {1: 150, 2: 50}\nseed: 9\n");
  auto config = load_config<TaskFileConfig>({(folder_ / "c.yaml").string()}, {});
  EXPECT_EQ(config.select.level1, 150);
  EXPECT_EQ(config.select.level2, 50);
  write_file(folder_ / "again.yaml", to_yaml(config));
  EXPECT_EQ(to_yaml(load_config<TaskFileConfig>({(folder_ / "again.yaml").string()}, {})), to_yaml(config));
}

}  // namespace
}  // namespace tritonrl::task_file_test
