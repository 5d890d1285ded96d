// SPDX-License-Identifier: Apache-2.0
#include "data/module_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/python_source.h"

namespace tritonrl::module_frame_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSource = R"(import math
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 64
UNUSED = 3
heads = 4

def init_scale(width):
    return 1 / math.sqrt(width)

class Gate(nn.Module):
    def forward(self, x):
        return F.silu(x)

class Block(nn.Module):
  expansion = 2

  def __init__(self, width):
    super(Block, self).__init__()
    self.gate = Gate()
    self.fc = self._layer(width)

  def _layer(self, width):
    return nn.Linear(width, width * self.expansion)

  def helper(self, x):
    return x

  def forward(self, x):
    return self.helper(self.gate(self.fc(x)))

class Model(nn.Module):
    """Says nothing."""
    def __init__(self, width=WIDTH, heads=2):
        super(Model, self).__init__()
        self.scale = init_scale(width)
        self.block = Block(width)

    def forward(self, x: torch.Tensor, mask=None, *, flag=None):
        return self.block(x) * self.scale

def get_inputs():
    return [torch.randn(UNUSED, WIDTH)]
)";

TEST(ModuleFrame, KeepsTheConstructorAndWhatItNeeds) {
  ModuleFrame frame = module_frame(kSource);
  EXPECT_EQ(frame.problem, "forward() takes more than plain arguments");
  std::string source = kSource;
  source.replace(source.find(", *, flag=None"), 14, "");
  frame = module_frame(source);
  EXPECT_EQ(frame.problem, "");
  EXPECT_THAT(frame.arguments, ElementsAre("x", "mask"));
  EXPECT_THAT(frame.imports, ElementsAre("import math"));
  EXPECT_THAT(frame.methods, HasSubstr("super(ModelNew, self).__init__()"));
  EXPECT_THAT(frame.methods, Not(HasSubstr("forward")));
  for (const char* kept : {"WIDTH = 64", "def init_scale", "class Gate(nn.Module):\n    pass", "    expansion = 2",
                           "    def _layer(self, width):\n      return nn.Linear"}) {
    EXPECT_THAT(frame.definitions, HasSubstr(kept));
  }
  for (const char* left : {"UNUSED", "heads", "forward", "helper", "get_inputs"}) {
    EXPECT_THAT(frame.definitions, Not(HasSubstr(left)));
  }
  EXPECT_EQ(first_syntax_error(frame.definitions + "class ModelNew(nn.Module):\n" + frame.methods), 0);
}

TEST(ModuleFrame, ModulesWithoutAConstructorHaveNone) {
  ModuleFrame frame = module_frame("class Model(nn.Module):\n    def forward(self, x):\n        return x\n");
  EXPECT_EQ(frame.problem, "");
  EXPECT_THAT(frame.methods, IsEmpty());
  EXPECT_NE(module_frame("class Other(nn.Module):\n    pass\n").problem, "");
  EXPECT_NE(module_frame("class Model(Base):\n    def forward(self, x):\n        return x\n").problem, "");
}

}  // namespace
}  // namespace tritonrl::module_frame_test
