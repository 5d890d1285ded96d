// SPDX-License-Identifier: Apache-2.0
// Every header can be included first: a source x.cpp begins with its own x.h (headers without one are compiled alone,
// see tests/CMakeLists.txt). And every file says under which licence it is and what it is for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/process/build_paths.h"

using tritonrl::source_dir;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Headers, SourcesBeginWithTheirOwn) {
  int checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/src")) {
    if (entry.path().extension() != ".cpp") continue;
    fs::path header = fs::path(entry.path()).replace_extension(".h");
    if (!fs::exists(header)) continue;
    std::string own = "#include \"" + fs::relative(header, source_dir() + "/src").string() + "\"";
    for (const auto& line : lines_of(entry.path())) {
      if (line.rfind("#include", 0) != 0) continue;
      EXPECT_EQ(line, own) << entry.path();
      break;
    }
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

TEST(Headers, SayLicenceAndPurpose) {
  for (const char* folder : {"/src", "/tests", "/bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() + folder)) {
      auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      auto lines = lines_of(entry.path());
      ASSERT_GE(lines.size(), 3u) << entry.path();
      EXPECT_EQ(lines[0], "// SPDX-License-Identifier: Apache-2.0") << entry.path();
      if (extension != ".h") continue;
      EXPECT_EQ(lines[1].rfind("// ", 0), 0u) << entry.path() << " does not say what it is for";
      bool once = false;
      for (const auto& line : lines) once |= line == "#pragma once";
      EXPECT_TRUE(once) << entry.path();
    }
  }
}

}  // namespace
