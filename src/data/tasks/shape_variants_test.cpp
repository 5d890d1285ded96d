// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/shape_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "data/python_source.h"

namespace tritonrl::shape_variants_test {
namespace {

using testing::HasSubstr;

TEST(ShapeVariants, ModuleIntegersAreLiteralsAndTheirProducts) {
  Sizes want = {{"N", 1024},   {"M", 2048},    {"batch_size", 16}, {"kernel_size", 3},
                {"half", 512}, {"height", 32}, {"width", 64},      {"rest", 1}};
  EXPECT_EQ(module_integers("N = 1024\nM = 1024 * 2\nbatch_size = 16\nkernel_size = 3\nhalf = (1024 // 2)\n"
                            "height, width = 32, 64\nrest, other = 1, f()\n"
                            "rate = 0.5\nname = 'x'\ntwice = 1\ntwice = 2\nL = N * 2\ndef f():\n    K = 3\n"),
            want);
}

TEST(ShapeVariants, SettingsAreNoSizes) {
  Sizes want = {{"N", 1024}, {"batch_size", 2}, {"in_channels", 8}};
  EXPECT_EQ(size_constants("N = 1024\nbatch_size = 2\nin_channels = 8\nkernel_size = 5\nstride = 4\ndim = 4\n"
                           "num_groups = 8\nscale_factor = 8\nK = 3\n"),
            want);
}

TEST(ShapeVariants, SizesInTheTextGetNames) {
  std::string named = name_sizes(
      "import torch\nshape = (64, 3)\nclass Model:\n    width = 64\ndef get_inputs():\n"
      "    return [torch.rand([4, 64]), torch.randint(0, 64, (4,))]\ndef get_init_inputs():\n    return [64, 0.5, "
      "2]\n");
  EXPECT_EQ(first_syntax_error(named), 0);
  EXPECT_THAT(named, HasSubstr("SIZE_4 = 4\nSIZE_64 = 64\n\nshape = (SIZE_64, 3)"));
  EXPECT_THAT(named, HasSubstr("torch.rand([SIZE_4, SIZE_64]), torch.randint(0, 64, (SIZE_4,))"));
  EXPECT_THAT(named, HasSubstr("return [SIZE_64, 0.5, 2]"));
  EXPECT_THAT(named, HasSubstr("width = 64"));
  std::string nothing = "def get_inputs():\n    return [N]\n";
  EXPECT_EQ(name_sizes(nothing), nothing);
}

TEST(ShapeVariants, ProposalsChangeEqualSizesAlikeAndUnequalOnesApart) {
  Sizes sizes = {{"batch_size", 128}, {"a", 1024}, {"b", 1024}, {"c", 4096}};
  auto tiny = tiny_proposals(sizes);
  ASSERT_FALSE(tiny.empty());
  EXPECT_EQ(tiny[0].at("a"), tiny[0].at("b"));
  EXPECT_NE(tiny[0].at("a"), tiny[0].at("c"));
  for (const Sizes& proposal : tiny) {
    for (const auto& [name, value] : proposal) EXPECT_LT(value, sizes.at(name)) << name;
  }
  auto larger = larger_proposals(sizes);
  ASSERT_FALSE(larger.empty());
  Sizes want = {{"batch_size", 192}, {"a", 1536}, {"b", 1536}, {"c", 6144}};
  EXPECT_EQ(larger[0], want);
  EXPECT_EQ(larger[1].count("batch_size"), 0u);
  EXPECT_TRUE(tiny_proposals({}).empty());
}

}  // namespace
}  // namespace tritonrl::shape_variants_test
