// SPDX-License-Identifier: Apache-2.0
// The pages and the code: files that a page names are there, and the loop of docs/life_of_a_candidate.md is the one
// that runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/process/build_paths.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = tritonrl::source_dir();

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  std::regex regex(pattern);
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) out.push_back(it->str(1));
  return out;
}

// Sources are named from src/, all else from the root.
bool is_there(const std::string& path) { return fs::exists(kRoot / "src" / path) || fs::exists(kRoot / path); }

const std::string kPath = R"(([a-z0-9_]+(?:/[a-z0-9_]+)+\.(?:h|cpp|py)))";

TEST(Docs, FilesTheyNameAreThere) {
  size_t checked = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& path : matches(text_of(entry.path()), "`" + kPath)) {
      EXPECT_TRUE(is_there(path)) << entry.path().filename() << " names " << path;
      ++checked;
    }
  }
  EXPECT_GT(checked, 40u);
}

struct Loop {
  std::string function, file;      // Where it runs.
  std::vector<std::string> lines;  // "  examples = credit.assign(...)    train/credit/credit.h".
};

Loop loop_of(const std::string& page) {
  Loop loop;
  std::istringstream in(page.substr(page.find("for (step")));
  std::string line;
  std::getline(in, line);
  std::smatch head;
  if (!std::regex_search(line, head, std::regex(R"((\w+)\(\) in )" + kPath))) return loop;
  loop.function = head[1], loop.file = head[2];
  while (std::getline(in, line) && line != "}") loop.lines.push_back(line);
  return loop;
}

// The body of `function` in a source: up to the first line that is a brace alone.
std::string body_of(const std::string& source, const std::string& function) {
  size_t begin = source.find("::" + function + "(");
  return begin == std::string::npos ? "" : source.substr(begin, source.find("\n}\n", begin) - begin);
}

// "" when the page's loop is what the code does, else what is not.
std::string difference(const Loop& loop, const std::string& body) {
  if (loop.lines.size() < 6 || body.empty()) return "no loop found";
  size_t at = 0;
  for (const std::string& line : loop.lines) {
    std::vector<std::string> files = matches(line, kPath);
    std::string call_text = files.empty() ? line : line.substr(0, line.find(files[0]));
    std::string files_text;
    for (const std::string& file : files) {
      if (!is_there(file)) return file + " is not there";
      files_text += text_of(kRoot / "src" / file);
    }
    std::vector<std::string> calls = matches(call_text, R"((\w+)\()");
    if (calls.empty() || files.empty()) return "a line without a call or a file:" + line;
    for (const std::string& call : calls) {
      if (files_text.find(" " + call + "(") == std::string::npos) return call + "() is in none of the files beside it";
      size_t found = body.find(call + "(", at);
      if (found == std::string::npos) return call + "() does not come there in " + loop.function + "()";
      at = found + call.size();
    }
  }
  return "";
}

// docs/trace.md has a row for each limit, as the table has it, and no others.
TEST(Docs, LimitsOfATraceAreThoseOfTheTable) {
  const std::regex line("(MAX_[A-Z_]+) = (.*)  # (.*)");
  std::string rows = "|---|---|---|\n";
  std::istringstream table(text_of(source_dir() + "/worker/trace_limits.py"));
  for (std::string one; std::getline(table, one);) {
    std::smatch parts;
    if (std::regex_match(one, parts, line)) {
      rows += "| `" + parts[1].str() + "` | " + parts[2].str() + " | " + parts[3].str() + " |\n";
    }
  }
  EXPECT_GT(rows.size(), 1000u);
  EXPECT_NE(text_of(source_dir() + "/docs/trace.md").find(rows + "\n"), std::string::npos) << rows;
}

TEST(Docs, TheLoopIsTheOneThatRuns) {
  std::string page = text_of(kRoot / "docs/life_of_a_candidate.md");
  Loop loop = loop_of(page);
  std::string body = body_of(text_of(kRoot / "src" / loop.file), loop.function);
  EXPECT_EQ(difference(loop, body), "");

  // And the test would tell.
  Loop other = loop;
  std::swap(other.lines[0], other.lines[1]);
  EXPECT_NE(difference(other, body), "");
  other = loop;
  other.lines[2] = "  made_up(groups)    train/rewards.h";
  EXPECT_EQ(difference(other, body), "made_up() is in none of the files beside it");
  other.lines[2] = "  give_rewards(groups)    train/gone.h";
  EXPECT_EQ(difference(other, body), "train/gone.h is not there");
}

}  // namespace
