// SPDX-License-Identifier: Apache-2.0
// Extraction: the last complete fenced block, Python preferred, limits.
#include "verify/extract.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace tritonrl::extract_test {
namespace {

std::string code_of(const std::string& answer) {
  Extraction found = extract_code(answer);
  EXPECT_EQ(found.found, found.why == Rule::kPass);
  return found.found ? found.code : cat("!", says(found.why));
}

TEST(Extract, TakesTheLastCompleteBlock) {
  EXPECT_EQ(code_of("a\n```python\nx = 1\n```\nb\n```python\ny = 2\n```\n"), "y = 2\n");
  EXPECT_EQ(code_of("```\nx = 1\n```"), "x = 1\n");
  EXPECT_EQ(code_of("~~~py\nx = 1\n~~~\n"), "x = 1\n");
  EXPECT_EQ(code_of("```python\r\nx = 1\r\n```\r\n"), "x = 1\r\n");
  EXPECT_EQ(code_of("````python\nx = '''\n```\n'''\n````\n"), "x = '''\n```\n'''\n");
  EXPECT_EQ(code_of("1. list\n   ```python\n   x\n   ```\n"), "   x\n");
}

TEST(Extract, PrefersPython) {
  EXPECT_EQ(code_of("```python\nx = 1\n```\nRun it:\n```bash\npython x.py\n```\n"), "x = 1\n");
  EXPECT_EQ(code_of("```bash\nls\n```\n```cpp\nint x;\n```\n"), "int x;\n");
  EXPECT_EQ(code_of("```Python title=\"a\"\nx\n```\n"), "x\n");
}

TEST(Extract, IgnoresUnfinishedBlocks) {
  EXPECT_EQ(code_of("```python\nx = 1\n```\nbetter:\n```python\nx = "), "x = 1\n");
  EXPECT_EQ(code_of("```python\nx = 1\n"), "!the last code block is not closed");
  EXPECT_EQ(code_of("```python\nx = 1\n~~~\n"), "!the last code block is not closed");
}

TEST(Extract, NothingThere) {
  EXPECT_EQ(code_of(""), "!the answer holds no fenced code block");
  EXPECT_EQ(code_of("I cannot. `x` and ```inline``` do not count.\n"), "!the answer holds no fenced code block");
  EXPECT_EQ(code_of("```python\n\n```\n"), "!the code is empty");
}

TEST(Extract, ToleratesBytesAndCapsSize) {
  std::string bytes("x = '\xff\xfe\0'\n", 10);
  EXPECT_EQ(code_of("```python\n" + bytes + "```\n"), bytes);
  std::string big(static_cast<size_t>(kMaxCandidateBytes), 'x');
  EXPECT_TRUE(extract_code("```\n" + big.substr(1) + "\n```\n").found);
  EXPECT_FALSE(extract_code("```\n" + big + "\n```\n").found);
  EXPECT_EQ(extract_code("```\n" + big + "\n```\n").why, Rule::kCodeTooLarge);
  EXPECT_FALSE(accept_code(std::string(10 << 20, 'x')).found);
  EXPECT_FALSE(accept_code("  \n").found);
  EXPECT_TRUE(accept_code("x").found);
}

}  // namespace
}  // namespace tritonrl::extract_test
