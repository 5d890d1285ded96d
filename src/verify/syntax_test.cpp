// SPDX-License-Identifier: Apache-2.0
// Syntax check: errors with their place; everything CPython 3.11 accepts is accepted.
#include "verify/syntax.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/json.h"
#include "base/text.h"

namespace tritonrl::syntax_test {
namespace {

TEST(Syntax, AcceptsModernPython) {
  EXPECT_TRUE(check_syntax("").ok);
  EXPECT_TRUE(check_syntax("import torch\nx = 5 // 2  # try: pass\n").ok);
  EXPECT_TRUE(check_syntax("match x:\n  case {'a': [1, *rest]} if rest: pass\n  case _: pass\n").ok);
  EXPECT_TRUE(check_syntax("try:\n  pass\nexcept* ValueError as e:\n  raise\n").ok);
  EXPECT_TRUE(check_syntax("def f(a, /, b, *, c: int = 3, **kw) -> 'x':\n  return (y := f'{a!r:>{b}}')\n").ok);
  EXPECT_TRUE(check_syntax("@triton.jit\ndef k(x_ptr, N: tl.constexpr):\n  a, *b = x[1:2, ...], 3\n").ok);
  EXPECT_TRUE(check_syntax("async def f():\n  async with a as b, c: await d\n  return [x async for x in y]\n").ok);
  EXPECT_TRUE(check_syntax("with (open(a) as b, c as d,):\n\tpass\r\n").ok);
}

TEST(Syntax, NamesThePlaceOfTheFirstError) {
  SyntaxCheck check = check_syntax("import torch\ndef f(:\n  return 1\n");
  EXPECT_FALSE(check.ok);
  EXPECT_EQ(check.line, 2);
  EXPECT_NE(check.message.find("line 2"), std::string::npos) << check.message;
  EXPECT_FALSE(check_syntax("x = (1, 2\ny = 3\n").ok);
  EXPECT_FALSE(check_syntax("def f():\nreturn 1)\n").ok);
  EXPECT_FALSE(check_syntax("This is an answer in prose.\n").ok);
}

TEST(Syntax, ToleratesHostileBytes) {
  EXPECT_FALSE(check_syntax(std::string("x = 1\0y", 7)).ok);
  std::string bytes;
  for (int i = 1; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_FALSE(check_syntax(bytes).ok);
  EXPECT_FALSE(check_syntax(std::string(200000, '(')).ok);  // Deep nesting must not overflow our stack.
}

// The widest collection of valid Python on any machine: the standard library.
TEST(Syntax, AcceptsTheStandardLibrary) {
  namespace fs = std::filesystem;
  fs::path root = "/usr/lib/python3.11";
  if (!fs::exists(root)) GTEST_SKIP() << "no " << root;
  int files = 0;
  std::vector<std::string> rejected;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".py" || entry.path().string().find("lib2to3") != std::string::npos) continue;
    std::string code = read_file(entry.path());
    ++files;
    if (auto check = check_syntax(code); !check.ok) rejected.push_back(entry.path().string() + " " + check.message);
  }
  EXPECT_GT(files, 100);
  EXPECT_TRUE(rejected.empty()) << rejected.size() << " of " << files << ":\n" << join(rejected, "\n");
}

}  // namespace
}  // namespace tritonrl::syntax_test
