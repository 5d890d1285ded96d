// SPDX-License-Identifier: Apache-2.0
#include "base/files/line_file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tritonrl::line_file_test {
namespace {

namespace fs = std::filesystem;

fs::path file_with(const std::string& text) {
  fs::path path = fs::path(testing::TempDir()) / "line_file_test.jsonl";
  fs::remove(path);
  if (!text.empty()) write_file(path, text);
  return path;
}

TEST(LineFile, OpeningCutsATornTail) {
  const std::string whole = "{\"a\":1}\n{\"a\":2}\n";
  for (const std::string& tail :
       {std::string(), std::string("{"), std::string("{\"a\":3}"), std::string("\0\0", 2), std::string(200000, 'x')}) {
    for (const std::string& head : {std::string(), whole}) {
      fs::path path = file_with(head + tail);
      LineFile file = LineFile::open(path);
      EXPECT_EQ(read_file(path), head) << tail.size();
      EXPECT_EQ(file.lines(), head.empty() ? 0 : 2);
      file.write({{"a", 4}});
      file.sync();
      EXPECT_EQ(read_file(path), head + "{\"a\":4}\n");
    }
  }
}

TEST(LineFile, KeepsTheFirstLinesAndGoesOnBehindThem) {
  fs::path path = file_with("1\n2\n3\n4");
  EXPECT_EQ(whole_lines(path), 3);
  LineFile file = LineFile::open(path);
  EXPECT_THROW(file.keep(4), Error);
  file.keep(2);
  file.write_lines("5\n6\n");
  std::vector<Json> seen;
  file.for_each([&](int64_t, const Json& line) { seen.push_back(line); });
  EXPECT_EQ(Json(seen), Json({1, 2, 5, 6}));
  file.keep(0);
  EXPECT_EQ(file.lines(), 0);
  EXPECT_EQ(whole_lines(path.string() + ".none"), 0);
}

TEST(LineFile, KeepIfDropsLinesInTheMiddleToo) {
  fs::path path = file_with("1\nno json\n2\n3\n");
  LineFile file = LineFile::open(path);
  file.keep_if([](const Json& line) { return line != 2; });
  EXPECT_EQ(read_file(path), "1\n3\n");
  file.write(4);
  EXPECT_EQ(read_file(path), "1\n3\n4\n") << "appends to the new file";
}

TEST(LineFile, AFolderOrAMissingFolderIsAnError) {
  EXPECT_THROW(LineFile::open(testing::TempDir()), Error);
  EXPECT_THROW(LineFile::open(fs::path(testing::TempDir()) / "no/such/folder.jsonl"), Error);
}

}  // namespace
}  // namespace tritonrl::line_file_test
