// SPDX-License-Identifier: Apache-2.0
#include "data/tasks/task_sampler.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/text.h"

namespace tritonrl::task_sampler_test {
namespace {

std::vector<Task> tasks(int level1, int level2) {
  std::vector<Task> out;
  for (int i = 0; i < level1 + level2; ++i) {
    Task task;
    task.id = cat("t", i);
    task.level = i < level1 ? 1 : 2;
    out.push_back(task);
  }
  return out;
}

std::vector<std::string> draw(TaskSampler& sampler, int64_t n) {
  std::vector<std::string> out;
  for (const Task* task : sampler.next(n)) out.push_back(task->id);
  return out;
}

TEST(EpochShuffle, DealsEveryMemberOnceAnEpochAndCanBePlacedAnywhere) {
  EpochShuffle shuffle({3, 5, 7, 9}, Rng(1)), other({3, 5, 7, 9}, Rng(1));
  std::vector<size_t> dealt;
  for (int i = 0; i < 40; ++i) dealt.push_back(shuffle.deal());
  std::set<std::vector<size_t>> orders;
  for (int epoch = 0; epoch < 10; ++epoch) {
    std::vector<size_t> order(dealt.begin() + 4 * epoch, dealt.begin() + 4 * epoch + 4);
    EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 4u);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u);
  for (int64_t at : {0, 3, 4, 17, 39}) {
    other.go_to(at);
    EXPECT_EQ(other.deal(), dealt[static_cast<size_t>(at)]);
  }
  EXPECT_THROW(other.go_to(-1), Error);
}

TEST(FixedMixTest, ShareIsExact) {
  FixedMix::Config config;
  config.level2_share = 0.3;
  FixedMix sampler(tasks(7, 5), config);
  int level2 = 0;
  for (const Task* task : sampler.next(1000)) level2 += task->level == 2;
  EXPECT_NEAR(level2, 300, 1);
}

TEST(FixedMixTest, EpochsSeeEveryTaskOnceInANewOrder) {
  FixedMix::Config config;
  config.level2_share = 0;
  FixedMix sampler(tasks(20, 0), config);
  auto first = draw(sampler, 20), second = draw(sampler, 20);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(std::set<std::string>(second.begin(), second.end()).size(), 20u);
  EXPECT_NE(first, second);
}

TEST(FixedMixTest, ResumeGoesOnExactly) {
  FixedMix::Config config;
  config.level2_share = 0.4;
  for (int64_t before : {0, 1, 7, 12, 30, 31, 100}) {
    FixedMix whole(tasks(7, 5), config), broken(tasks(7, 5), config), resumed(tasks(7, 5), config);
    draw(whole, before);
    draw(broken, before);
    whole.observe({{"t0", 1, 10, 4}});
    broken.observe({{"t0", 1, 10, 4}});
    resumed.restore(Json::parse(broken.state().dump()));
    EXPECT_EQ(draw(whole, 40), draw(resumed, 40)) << "after " << before;
    EXPECT_EQ(whole.state(), resumed.state());
    EXPECT_EQ(whole.metrics(), resumed.metrics());
  }
}

TEST(FixedMixTest, BatchesDoNotMatter) {
  FixedMix one(tasks(7, 5), {}), many(tasks(7, 5), {});
  auto all = draw(one, 30);
  std::vector<std::string> pieces;
  for (int i = 0; i < 10; ++i) {
    for (const auto& id : draw(many, 3)) pieces.push_back(id);
  }
  EXPECT_EQ(all, pieces);
}

TEST(FixedMixTest, Metrics) {
  FixedMix sampler(tasks(4, 4), {});
  sampler.next(8);
  sampler.observe({{"t0", 1, 10, 4}, {"t1", 1, 10, 2}, {"t5", 2, 5, 1}});
  auto metrics = sampler.metrics();
  EXPECT_DOUBLE_EQ(metrics.at("sampler/level1_accuracy"), 0.3);
  EXPECT_DOUBLE_EQ(metrics.at("sampler/level2_accuracy"), 0.2);
  EXPECT_DOUBLE_EQ(metrics.at("sampler/level1_epochs"), 1.0);
}

TEST(FixedMixTest, RefusesWhatDoesNotFit) {
  FixedMix::Config config;
  EXPECT_THROW(FixedMix(tasks(3, 0), config), Error);
  config.level2_share = 1;
  EXPECT_NO_THROW(FixedMix(tasks(0, 3), config));
  FixedMix sampler(tasks(3, 3), {}), larger(tasks(4, 3), {});
  EXPECT_THROW(larger.restore(sampler.state()), Error) << "another task set";
  EXPECT_THROW(sampler.restore(Json::object()), Error);
  Json state = sampler.state();
  state["drawn"] = 5;
  EXPECT_THROW(sampler.restore(state), Error);
  state = sampler.state();
  state.erase("levels");
  EXPECT_THROW(sampler.restore(state), Error);
  state = sampler.state();
  state["identity"]["settings"]["seed"] = "x";
  EXPECT_THROW(sampler.restore(state), Error);
}

}  // namespace
}  // namespace tritonrl::task_sampler_test
