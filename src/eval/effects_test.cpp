// SPDX-License-Identifier: Apache-2.0
#include "eval/effects.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tritonrl::effects_test {
namespace {

// All settings of the axes a, b, c; task t of a cell has the value fn(a, b, c, t).
template <class Fn>
std::vector<CellMeasure> factorial(const Fn& fn, int tasks, std::vector<int64_t> seeds = {1}) {
  std::vector<CellMeasure> cells;
  for (int i = 0; i < 8; ++i) {
    bool a = i & 1, b = i & 2, c = i & 4;
    for (int64_t seed : seeds) {
      CellMeasure cell{{{"a", a ? "on" : "off"}, {"b", b ? "on" : "off"}, {"c", c ? "on" : "off"}}, seed, {}};
      for (int t = 0; t < tasks; ++t) cell.tasks["t" + std::to_string(t)] = fn(a, b, c, t, seed);
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

TEST(Effects, ByHand) {
  auto cells =
      factorial([](bool a, bool b, bool, int t, int64_t) { return 0.1 * t + 0.2 * a + (a && b ? 0.4 : 0); }, 5);
  Effect a = main_effect(cells, "a", "off", "on");
  EXPECT_EQ(a.name, "a on");
  EXPECT_NEAR(a.difference, 0.4, 1e-12);  // 0.2 in the half without b, 0.6 in the half with it.
  EXPECT_EQ(a.blocks, 4);
  EXPECT_EQ(a.tasks, 5);
  EXPECT_NEAR((a.interval.low + a.interval.high) / 2, 0.4, 1e-12);
  // Four blocks, 0.2, 0.2, 0.6, 0.6: standard deviation 0.2309, and Student's 3.182 of three degrees of freedom.
  EXPECT_NEAR(a.interval.high - 0.4, 3.182 * 0.2309 / 2, 0.02);
  EXPECT_NEAR(main_effect(cells, "b", "off", "on").difference, 0.2, 1e-12);
  auto same = factorial([](bool a, bool, bool, int t, int64_t) { return 0.1 * t + 0.2 * a; }, 5);
  EXPECT_TRUE(main_effect(same, "a", "off", "on").measurable());
  Effect nothing = main_effect(cells, "c", "off", "on");
  EXPECT_NEAR(nothing.difference, 0, 1e-12);
  EXPECT_FALSE(nothing.measurable());
  Effect both = interaction(cells, "a", "off", "on", "b", "off", "on");
  EXPECT_EQ(both.name, "a on x b on");
  EXPECT_NEAR(both.difference, 0.4, 1e-12);
  EXPECT_EQ(both.blocks, 2);
  EXPECT_NEAR(interaction(cells, "a", "off", "on", "c", "off", "on").difference, 0, 1e-12);
}

TEST(Effects, SeedsOfOneSettingAreOneVoice) {
  // Three seeds of a = on (values 1, 2, 3), one of a = off.
  std::vector<CellMeasure> cells;
  for (int64_t seed : {1, 2, 3}) cells.push_back({{{"a", "on"}}, seed, {{"", static_cast<double>(seed)}}});
  cells.push_back({{{"a", "off"}}, 1, {{"", 0.5}}});
  Effect effect = main_effect(cells, "a", "off", "on");
  EXPECT_DOUBLE_EQ(effect.difference, 1.5);
  EXPECT_EQ(effect.blocks, 1);
  EXPECT_FALSE(effect.measurable());  // One block says nothing of chance.
}

TEST(Effects, WhatIsMissingIsLeftOut) {
  auto cells = factorial([](bool a, bool b, bool, int, int64_t) { return a ? (b ? 3.0 : 1.0) : 0.0; }, 4);
  std::erase_if(cells,
                [](const CellMeasure& cell) { return cell.setting.at("a") == "on" && cell.setting.at("b") == "on"; });
  Effect effect = main_effect(cells, "a", "off", "on");
  EXPECT_EQ(effect.blocks, 2);
  EXPECT_DOUBLE_EQ(effect.difference, 1);
  EXPECT_EQ(interaction(cells, "a", "off", "on", "b", "off", "on").blocks, 0);
  cells[0].tasks.erase("t0");  // A task that one run lacks does not count in any.
  EXPECT_EQ(main_effect(cells, "a", "off", "on").tasks, 3);
  EXPECT_EQ(main_effect({}, "a", "off", "on").blocks, 0);
  EXPECT_EQ(main_effect(cells, "unknown", "off", "on").blocks, 0);
}

// The interval holds the truth about as often as it says, when training noise and task noise are of one size.
TEST(Effects, IntervalsHoldTheTruth) {
  int held = 0, called = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    Rng rng(static_cast<uint64_t>(1000 + trial));
    std::map<int, double> run_noise;
    auto cells = factorial(
        [&](bool a, bool b, bool c, int, int64_t) {
          auto [it, is_new] = run_noise.try_emplace(a + 2 * b + 4 * c, 0);
          if (is_new) it->second = 0.05 * rng.normal();
          return 0.1 * b + it->second + 0.2 * rng.normal();
        },
        40);
    Effect none = main_effect(cells, "a", "off", "on"), some = main_effect(cells, "b", "off", "on");
    held += some.interval.low <= 0.1 && 0.1 <= some.interval.high;
    called += none.measurable();
  }
  EXPECT_GE(held, kTrials * 93 / 100);
  EXPECT_LE(called, kTrials * 7 / 100);
}

}  // namespace
}  // namespace tritonrl::effects_test
