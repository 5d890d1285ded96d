// SPDX-License-Identifier: Apache-2.0
// Task files: what is accepted, and what an error says about the rest.
#include "data/tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl::task_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kSource[] =
    "import torch.nn as nn\nN = 4\nclass Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n";

class TaskTest : public testing::Test {
 protected:
  TaskTest() { fs::create_directories(folder_); }
  ~TaskTest() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  template <class Fn>
  static std::string error_of(Fn fn) {
    try {
      fn();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      return e.what();
    }
    return "no error";
  }
  static Json good() { return {{"id", "a"}, {"level", 1}, {"source", kSource}}; }

  fs::path folder_ = fs::temp_directory_path() / cat("task_test_", ::getpid());
};

TEST_F(TaskTest, RoundTrip) {
  Task task = task_from_json(good(), "here:1");
  task.name = "plus_one";
  task.solution = "class ModelNew: pass";
  task.graph_hash = "graph:00";
  task.tiny = {{"N", 3}};
  task.origin = "test";
  task.licence = "Apache-2.0";
  task.difficulty = 3;
  save_tasks(folder_ / "tasks.jsonl", {task});
  auto loaded = load_tasks(folder_ / "tasks.jsonl");
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(to_json(loaded[0]), to_json(task));
}

TEST_F(TaskTest, ErrorsNameFileAndLine) {
  Json no_model = good();
  no_model["id"] = "b";
  no_model["source"] = replace_all(kSource, "class Model", "class Net");
  fs::path path = write("bad.jsonl", json_line(good()) + "\n\n" + json_line(no_model) + "\n");
  std::string error = error_of([&] { load_tasks(path); });
  EXPECT_THAT(error, HasSubstr("bad.jsonl:3"));
  EXPECT_THAT(error, HasSubstr("no class Model"));
}

TEST_F(TaskTest, IdsAreUnique) {
  fs::path path = write("twice.jsonl", json_line(good()) + "\n" + json_line(good()) + "\n");
  std::string error = error_of([&] { load_tasks(path); });
  EXPECT_THAT(error, HasSubstr("twice.jsonl:2"));
  EXPECT_THAT(error, HasSubstr("line 1"));
}

TEST_F(TaskTest, EveryRequiredFieldIsMissed) {
  for (const char* key : {"id", "level", "source"}) {
    Json json = good();
    json.erase(key);
    EXPECT_THAT(error_of([&] { task_from_json(json, "f:7"); }), testing::AllOf(HasSubstr(key), HasSubstr("f:7")));
  }
}

TEST_F(TaskTest, WrongTypesAndValues) {
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"id", 3},         {"id", ""},          {"level", "1"},         {"level", 0},         {"level", 1.5},
      {"source", 1},     {"tiny", "N=3"},     {"tiny", {{"N", 1.5}}}, {"tiny", {{"N", 0}}}, {"solution", false},
      {"difficulty", 0}, {"difficulty", "3"},
  };
  for (const auto& [key, value] : wrong) {
    Json json = good();
    json[key] = value;
    EXPECT_THAT(error_of([&] { task_from_json(json, "f:1"); }), HasSubstr(key)) << value;
  }
  EXPECT_THAT(error_of([&] { task_from_json(Json::array(), "f:1"); }), HasSubstr("object"));
}

TEST_F(TaskTest, SourceMustBeATask) {
  for (const char* name : {"get_inputs", "get_init_inputs"}) {
    Json json = good();
    json["source"] = replace_all(kSource, cat("def ", name, "("), "def other(");
    EXPECT_THAT(error_of([&] { task_from_json(json, "f:1"); }), HasSubstr(cat("no function ", name)));
  }
  Json json = good();
  json["source"] = std::string(kSource) + "def broken(:\n";
  EXPECT_THAT(error_of([&] { task_from_json(json, "f:1"); }), HasSubstr("line 10"));
}

TEST_F(TaskTest, PythonFile) {
  Task task = task_from_python(write("plus.py", kSource));
  EXPECT_EQ(task.id, "plus.py");
  EXPECT_EQ(task.name, "plus");
  EXPECT_EQ(task.graph_hash.rfind("source:", 0), 0u);
  EXPECT_THAT(error_of([&] { task_from_python(write("empty.py", "")); }), HasSubstr("empty.py"));
  EXPECT_THAT(error_of([&] { task_from_python(folder_ / "absent.py"); }), HasSubstr("absent.py"));
}

}  // namespace
}  // namespace tritonrl::task_test
