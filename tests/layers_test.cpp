// SPDX-License-Identifier: Apache-2.0
// A room may include only rooms to its left. Reads the #include lines of src/ and fails on an arrow to the right.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "base/process/build_paths.h"

using tritonrl::source_dir;

namespace {

namespace fs = std::filesystem;

// Room -> rooms it may include, or single headers of a room ("verify/verdict.h").
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"base", {}},
    {"data", {"base"}},
    {"model", {"base", "data/prompt.h"}},
    {"policy", {"base", "data", "model"}},
    {"verify", {"base", "data"}},
    {"reward", {"base", "verify/verdict.h"}},
    {"rollout", {"base", "data", "model/device.h", "policy", "verify", "reward"}},
    {"train", {"base", "data", "model", "policy", "verify", "reward", "rollout"}},
    {"eval", {"base", "verify", "rollout/record.h"}},
    {"report", {"base", "eval"}},
    {"app", {"base", "data", "model", "policy", "verify", "reward", "rollout", "train", "eval", "report"}},
};

// Quoted includes of a file.
std::set<std::string> includes(const fs::path& file) {
  std::set<std::string> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("#include \"", 0) != 0) continue;
    out.insert(line.substr(10, line.find('"', 10) - 10));
  }
  return out;
}

// "" when `included` may be named in `room`, else why not.
std::string problem(const std::string& room, const std::string& included) {
  std::string other = included.substr(0, included.find('/'));
  if (other == room || !kAllowed.count(other)) return "";
  const auto& allowed = kAllowed.at(room);
  if (allowed.count(other) || allowed.count(included)) return "";
  return room + " may not include " + included;
}

TEST(Layers, RoomsIncludeOnlyRoomsToTheirLeft) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/src")) {
    auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".inc") continue;
    std::string room = fs::relative(entry.path(), source_dir() + "/src").begin()->string();
    if (room == "ext") continue;  // Extensions: base and the room that owns their seam.
    ASSERT_TRUE(kAllowed.count(room)) << "unknown room " << room;
    ++files;
    bool test = entry.path().string().find("_test.cpp") != std::string::npos;
    for (const auto& included : includes(entry.path())) {
      if (test && room == "train" && included == "model/train_graph.h") continue;
      EXPECT_EQ(problem(room, included), "") << entry.path();
    }
  }
  EXPECT_GT(files, 60);
}

// Extension -> the rooms it may include besides base and itself.
const std::map<std::string, std::set<std::string>> kSeams = {
    {"calibrated_timing", {"verify"}}, {"curriculum", {"data"}}, {"multi_input", {"data", "verify"}}};

TEST(Layers, ExtensionsSeeTheirSeamAndNobodySeesThem) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/src")) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    fs::path file = fs::relative(entry.path(), source_dir() + "/src");
    bool is_extension = file.begin()->string() == "ext";
    std::string own = is_extension ? std::next(file.begin())->string() : "";
    if (is_extension) {
      ASSERT_TRUE(kSeams.count(own)) << "unknown extension " << own;
    }
    for (const auto& included : includes(entry.path())) {
      std::string room = included.substr(0, included.find('/'));
      if (!is_extension) {
        EXPECT_TRUE(room != "ext" || file == "app/assemble.cpp") << file << " names an extension";
      } else if (room == "ext") {
        EXPECT_EQ(included.rfind("ext/" + own + "/", 0), 0u) << file << " includes " << included;
      } else if (kAllowed.count(room)) {
        EXPECT_TRUE(room == "base" || kSeams.at(own).count(room)) << file << " includes " << included;
      }
    }
    files += is_extension;
  }
  EXPECT_GT(files, 0);
}

TEST(Layers, TheRuleBites) {
  EXPECT_NE(problem("verify", "policy/policy.h"), "");
  EXPECT_NE(problem("rollout", "train/trainer.h"), "");
  EXPECT_NE(problem("eval", "rollout/evaluation.h"), "");
  EXPECT_NE(problem("report", "rollout/record.h"), "");
  EXPECT_NE(problem("base", "data/tasks/task.h"), "");
  EXPECT_EQ(problem("report", "eval/metrics.h"), "");
  EXPECT_EQ(problem("train", "verify/verdict.h"), "");
}

// Programs of their own, with torch.
bool is_judge_or_replayer(const fs::path& file) {
  const std::string folder = file.parent_path().string();
  return folder == source_dir() + "/src/verify/judge" || folder == source_dir() + "/src/verify/replay";
}

// Rooms that do not see torch build in seconds.
TEST(Layers, TorchStaysInItsRooms) {
  const std::set<std::string> without = {"base", "data", "verify", "reward", "eval", "report"};
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/src")) {
    std::string room = fs::relative(entry.path(), source_dir() + "/src").begin()->string();
    if (!without.count(room)) continue;
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    if (is_judge_or_replayer(entry.path())) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      bool torch = line.rfind("#include <ATen", 0) == 0 || line.rfind("#include <torch", 0) == 0 ||
                   line.rfind("#include <c10", 0) == 0;
      EXPECT_FALSE(torch) << entry.path() << ": " << line;
    }
  }
}

TEST(Layers, NothingOutsideIncludesJudgeAndReplayer) {
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/src")) {
    if (!entry.is_regular_file() || is_judge_or_replayer(entry.path())) continue;
    for (const auto& included : includes(entry.path())) {
      EXPECT_NE(included.rfind("verify/judge/", 0), 0u) << entry.path() << " includes " << included;
      EXPECT_NE(included.rfind("verify/replay/", 0), 0u) << entry.path() << " includes " << included;
    }
  }
}

// A folder that fits in a head.
TEST(Layers, AtMostTwelveHeadersAFolderAndFiveHundredLinesAFile) {
  const std::set<std::string> code = {".h", ".cpp", ".inc", ".py", ".cu", ".sh"};
  std::map<std::string, int> headers;
  for (const char* root : {"src", "worker", "tools", "tests", "bench", "dev", "fuzz"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/" + root)) {
      const auto extension = entry.path().extension();
      if (!code.count(extension.string())) continue;
      std::ifstream in(entry.path());
      int lines = 0;
      for (std::string line; std::getline(in, line);) ++lines;
      EXPECT_LE(lines, 500) << entry.path();
      if (extension == ".h") ++headers[entry.path().parent_path().string()];
    }
  }
  EXPECT_GT(headers.size(), 20u);
  for (const auto& [folder, count] : headers) EXPECT_LE(count, 12) << folder;
}

}  // namespace
