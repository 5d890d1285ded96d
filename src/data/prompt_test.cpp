// SPDX-License-Identifier: Apache-2.0
#include "data/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/text.h"

namespace tritonrl::prompt_test {
namespace {

class PromptTest : public testing::Test {
 protected:
  ~PromptTest() override { std::filesystem::remove(path_); }
  PromptTemplate load(const std::string& text) {
    write_file(path_, text);
    return PromptTemplate::load(path_);
  }
  std::string path_ = (std::filesystem::temp_directory_path() / cat("prompt_test_", ::getpid(), ".txt")).string();
};

TEST_F(PromptTest, ShippedPromptRenders) {
  auto prompt = PromptTemplate::load(source_dir() + "/prompts/triton.txt");
  Task task;
  task.source = "x = 1\n";
  auto messages = prompt.render(task);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].role, "user");
  EXPECT_THAT(messages[1].content, testing::HasSubstr("```python\nx = 1\n```"));
  EXPECT_LT(messages[0].content.size() + messages[1].content.size(), 250u) << "every prompt token costs";
}

TEST_F(PromptTest, SystemPartIsOptional) {
  Task task;
  task.source = "code";
  auto messages = load("Say: {{source}}\n").render(task);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].content, "Say: code");
  messages = load("---\nSay: {{source}}\n").render(task);
  ASSERT_EQ(messages.size(), 1u);
  messages = load("Be brief.\n---\n{{source}}\n---\nend").render(task);
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[1].content, "code\n---\nend") << "only the first rule divides";
}

TEST_F(PromptTest, PlaceHolderInASourceIsLeftAlone) {
  Task task;
  task.source = "s = '{{source}}'";
  EXPECT_EQ(load("{{source}}").render(task)[0].content, task.source);
}

TEST_F(PromptTest, BadFiles) {
  EXPECT_THROW(PromptTemplate::load("no/such/prompt.txt"), Error);
  EXPECT_THROW(load(""), Error);
  EXPECT_THROW(load("no place holder"), Error);
  EXPECT_THROW(load("{{source}}\n---\nnot below the rule"), Error);
  EXPECT_THROW(load("{{source}} {{source}}"), Error);
  EXPECT_THROW(load("{{source}}\n---\n{{source}}"), Error);
}

TEST_F(PromptTest, PlansSayWhatTheKernelsDo) {
  Task task;
  task.source =
      "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x, y):\n    return torch.relu(x) + y\n";
  task.solution = R"(
import triton
import triton.language as tl

@triton.jit
def squash(x):
    return tl.sigmoid(x)

@triton.jit
def first(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    off = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + off, mask=off < n)
    y = tl.load(y_ptr + off, off < n)
    tl.store(out_ptr + off, squash(tl.maximum(x, tl.exp(y))), mask=off < n)

@triton.jit
def never(a_ptr):
    tl.store(a_ptr, tl.load(a_ptr))

@triton.jit
def total(a, BLOCK: tl.constexpr):
    for k in range(4):
        tl.store(a + 1, tl.sum(tl.load(a + k)))

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        first[(triton.cdiv(n, 1024),)](x, y, out, n, 1024)
        total[(1,)](out, BLOCK=4)
        return out
)";
  EXPECT_EQ(answer_for(task, true).substr(0, answer_for(task, true).find("```")),
            "2 kernels do + and relu:\n"
            "- `first` on the grid `(triton.cdiv(n, 1024),)`: a program reads x and y under a mask, computes squash, "
            "maximum and exp, and writes out.\n"
            "- `total` on the grid `(1,)`: a program reads a, block after block in a loop, computes sum, and writes a."
            "\n\n");
  EXPECT_EQ(answer_for(task).find("```"), 0u);
}

TEST_F(PromptTest, Answers) {
  Task with;
  with.id = "a";
  with.solution = "\nclass ModelNew: pass\n\n";
  EXPECT_EQ(answer_for(with), "```python\nclass ModelNew: pass\n```");
  EXPECT_EQ(answer_for(with, true), answer_for(with)) << "nothing is launched: no plan";
}

}  // namespace
}  // namespace tritonrl::prompt_test
