// SPDX-License-Identifier: Apache-2.0
// Planted leaks are found in their class; clean sets pass.
#include "data/tasks/leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl::leaks_test {
namespace {

using testing::HasSubstr;

constexpr char kNetwork[] = R"(import torch
import torch.nn as nn

batch = 16

class Model(nn.Module):
    """Two branches."""
    def __init__(self, width, rate):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Conv1d(width, width, 3, padding=1)
        self.rate = rate

    def forward(self, x):
        left = torch.sigmoid(self.first(x))
        right = torch.tanh(x * 0.25)
        total = left + right * self.rate
        peak = torch.amax(total, dim=1, keepdim=True)
        return torch.softmax(total - peak, dim=1)

def get_inputs():
    return [torch.randn(batch, 64)]

def get_init_inputs():
    return [64, 0.5]
)";

constexpr char kOther[] = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a, b)
        c = c.transpose(0, 1).contiguous()
        d = torch.cumsum(c, dim=0)
        e = torch.where(d > 0, d, c)
        return e.norm(dim=1).clamp(max=3)

def get_inputs():
    return [torch.randn(8, 8), torch.randn(8, 8)]

def get_init_inputs():
    return []
)";

Task task(const std::string& id, const std::string& source) {
  Task out;
  out.id = id;
  out.source = source;
  return out;
}

std::vector<Leak> leaks(const std::string& train) { return find_leaks({task("t", train)}, {task("h", kNetwork)}); }

TEST(Leaks, RenamedVariablesAndCommentsAreTheSameSource) {
  std::string renamed = replace_all(replace_all(kNetwork, "left", "one_side"), "self.first", "self.dense");
  renamed = replace_all(renamed, "        right =", "        # The other\n        right  =");
  auto found = leaks(renamed);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "source");
  EXPECT_EQ(found[0].train_id, "t");
  EXPECT_EQ(found[0].heldout_id, "h");
}

TEST(Leaks, ChangedConstantsAreAClassOfTheirOwn) {
  auto found = leaks(replace_all(replace_all(kNetwork, "0.25", "0.75"), "dim=1", "dim=-1"));
  ASSERT_EQ(found.size(), 0u + 1u);
  EXPECT_EQ(found[0].kind, "near");  // A sign is no number; the lines tell.
  found = leaks(replace_all(replace_all(kNetwork, "0.25", "0.75"), "dim=1", "dim=0"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "constants");
}

TEST(Leaks, ReorderedLinesAreFoundByTheirLines) {
  std::string left = "        left = torch.sigmoid(self.first(x))\n", right = "        right = torch.tanh(x * 0.25)\n";
  std::string source = replace_all(kNetwork, left + right, right + left);
  ASSERT_NE(source, kNetwork);
  auto found = leaks(source);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "near");
  EXPECT_DOUBLE_EQ(found[0].overlap, 1);
}

TEST(Leaks, RecordedGraphsDecideFirst) {
  Task train = task("t", kOther), held = task("h", kNetwork);
  train.recorded = {3, 2, "trace:a", "trace:la", "outline:o"};
  held.recorded = {3, 2, "trace:b", "trace:la", "outline:o"};
  auto found = find_leaks({train}, {held});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "constants");
  held.recorded.graph = "trace:a";
  found = find_leaks({train}, {held});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "graph");
}

TEST(Leaks, OutlinesCountForFusionsAlone) {
  Task train = task("t", kOther), held = task("h", kNetwork);
  train.recorded = {2, 2, "trace:a", "trace:la", "outline:o"};
  held.recorded = {2, 2, "trace:b", "trace:lb", "outline:o"};
  held.level = 2;
  auto found = find_leaks({train}, {held});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "outline");
  held.level = 1;
  EXPECT_TRUE(find_leaks({train}, {held}).empty());
  held.level = 2;
  held.recorded.outline = train.recorded.outline = "";  // Nothing is known of them.
  EXPECT_TRUE(find_leaks({train}, {held}).empty());
}

TEST(Leaks, OtherTasksPass) {
  EXPECT_TRUE(leaks(kOther).empty());
  EXPECT_TRUE(find_leaks({}, {task("h", kNetwork)}).empty());
  EXPECT_NO_THROW(
      refuse_leaks({task("t", kOther)}, {task("h", kNetwork)}, {"graph", "source", "constants", "near"}, ""));
}

TEST(Leaks, RefusalNamesTheTasks) {
  try {
    refuse_leaks({task("mine", kNetwork)}, {task("held", kNetwork)}, {"source"}, "data.train.file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("mine ~ held (source)"), HasSubstr("check-split")));
  }
  EXPECT_NO_THROW(refuse_leaks({task("mine", kNetwork)}, {task("held", kNetwork)}, {"graph"}, ""));
}

TEST(Leaks, CountsNameAllClasses) {
  auto counts = count_leaks({{"near", "a", "b", 0.6}, {"near", "c", "b", 0.7}});
  EXPECT_EQ(counts.size(), 5u);
  EXPECT_EQ(counts["near"], 2);
  EXPECT_EQ(counts["graph"], 0);
}

}  // namespace
}  // namespace tritonrl::leaks_test
