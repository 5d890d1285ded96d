// SPDX-License-Identifier: Apache-2.0
// The graph hash sees what is computed and nothing else; the source hash sees a normal form of the text.
#include "data/tasks/op_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl::op_graph_test {
namespace {

// op(x, y) followed by relu; operands in the order asked for.
std::string pair_hash(const std::string& op, bool commutative, bool swapped, const std::string& left = "full",
                      const std::string& right = "row") {
  OpGraph graph;
  auto x = graph.add_input(left), y = graph.add_input(right);
  auto sum = graph.add(op, {}, swapped ? std::vector{y, x} : std::vector{x, y}, commutative);
  graph.set_output(graph.add("relu", {}, {sum}));
  return graph.hash();
}

TEST(OpGraphTest, CommutativeOperandsAreUnordered) {
  EXPECT_EQ(pair_hash("add", true, false), pair_hash("add", true, true));
  EXPECT_NE(pair_hash("sub", false, false), pair_hash("sub", false, true));
  EXPECT_NE(pair_hash("add", true, false), pair_hash("mul", true, false));
}

TEST(OpGraphTest, OrderOfInputsDoesNotMatter) {
  OpGraph a, b;
  auto ax = a.add_input("full"), ay = a.add_input("row");
  a.set_output(a.add("sub", {}, {ax, ay}));
  auto by = b.add_input("row"), bx = b.add_input("full");
  b.set_output(b.add("sub", {}, {bx, by}));
  EXPECT_EQ(a.hash(), b.hash());
}

TEST(OpGraphTest, OneInputTwiceIsNotTwoInputs) {
  OpGraph twice, two;
  auto x = twice.add_input("full");
  twice.set_output(twice.add("mul", {}, {x, x}, true));
  auto u = two.add_input("full"), v = two.add_input("full");
  two.set_output(two.add("mul", {}, {u, v}, true));
  EXPECT_NE(twice.hash(), two.hash());
}

TEST(OpGraphTest, AttributesOutputAndReuseCount) {
  auto chain = [](const std::string& slope, bool residual, bool early) {
    OpGraph graph;
    auto x = graph.add_input("full"), other = graph.add_input("full");
    auto y = graph.add("leaky_relu", {slope}, {x});
    auto z = graph.add("add", {}, {y, residual ? x : other}, true);
    graph.set_output(early ? y : z);
    return graph.hash();
  };
  EXPECT_EQ(chain("0.1", false, false), chain("0.1", false, false));
  EXPECT_NE(chain("0.1", false, false), chain("0.2", false, false));
  EXPECT_NE(chain("0.1", false, false), chain("0.1", true, false));
  EXPECT_NE(chain("0.1", false, false), chain("0.1", false, true));
  EXPECT_EQ(chain("0.1", false, false).size(), 6 + 32u);
}

constexpr char kSource[] = R"(import torch
import torch.nn as nn
import torch.nn.functional as F

N = 128


class Model(nn.Module):
    """Says what it does."""

    def __init__(self, n: int):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.linear(x), approximate="tanh")  # A comment.
        return y * 0.5


def get_inputs():
    return [torch.randn(N, N)]


def get_init_inputs():
    return [N]
)";

TEST(SourceHashTest, NamesFormattingAndSizesDoNotMatter) {
  std::string other = R"(import torch
from torch import nn
from torch.nn import functional

WIDTH = 7
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc = nn.Linear(features,
                            features)
    def forward(self, inp):
        out = functional.gelu(self.fc(inp), approximate='tanh')

        return out * 0.5
def get_inputs():
    return [torch.randn(WIDTH, WIDTH)]
def get_init_inputs():
    return [WIDTH]
)";
  EXPECT_EQ(graph_hash_of_source(kSource), graph_hash_of_source(other));
  EXPECT_EQ(graph_hash_of_source(kSource).rfind("source:", 0), 0u);
}

TEST(SourceHashTest, WhatIsComputedMatters) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"F.gelu", "F.silu"},      {"* 0.5", "* 0.25"},
      {"* 0.5", "+ 0.5"},        {"nn.Linear(n, n)", "nn.Linear(n, n, bias=False)"},
      {"\"tanh\"", "\"none\""},  {"y * 0.5", "x * 0.5"},
      {"return y", "return -y"},
  };
  for (const auto& [from, to] : changes) {
    std::string changed = replace_all(kSource, from, to);
    ASSERT_NE(changed, kSource);
    EXPECT_NE(graph_hash_of_source(changed), graph_hash_of_source(kSource)) << to;
  }
}

TEST(SourceHashTest, Operators) {
  EXPECT_THAT(operators_of_source(kSource), testing::UnorderedElementsAre("gelu", "linear", "Linear", "*"));
  EXPECT_THAT(operators_of_source("class Model:\n  def f(self, x):\n    return -x @ x.T - 1\n"),
              testing::UnorderedElementsAre("unary -", "@", "-"));
}

TEST(SourceHashTest, SyntaxErrors) {
  EXPECT_EQ(first_syntax_error(kSource), 0);
  EXPECT_EQ(first_syntax_error("x = 1\ny = = 2\n"), 2);
  EXPECT_EQ(first_syntax_error(""), 0);
}

}  // namespace
}  // namespace tritonrl::op_graph_test
