// SPDX-License-Identifier: Apache-2.0
#include "ext/curriculum/curriculum.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace tritonrl::curriculum::curriculum_test {
namespace {

std::vector<Task> tasks(int level1, int level2) {
  std::vector<Task> out;
  for (int i = 0; i < level1 + level2; ++i) {
    Task task;
    task.id = cat("t", i);
    task.level = i < level1 ? 1 : 2;
    task.difficulty = i < level1 ? 1 : 2 + i % 2;
    out.push_back(task);
  }
  return out;
}

std::vector<std::string> draw(TaskSampler& sampler, int64_t n) {
  std::vector<std::string> out;
  for (const Task* task : sampler.next(n)) out.push_back(task->id);
  return out;
}

int level2_of(TaskSampler& sampler, int64_t n) {
  int count = 0;
  for (const Task* task : sampler.next(n)) count += task->level == 2;
  return count;
}

Adaptive::Config adaptive(int64_t window = 20) {
  Adaptive::Config out;
  out.window = window;
  return out;
}

Promote::Config promote(int64_t window = 20) {
  Promote::Config out;
  out.window = window;
  return out;
}

// --- What they are made of.

TEST(SuccessWindow, KeepsWholeGroupsThatCoverItsSize) {
  SuccessWindow window(20);
  EXPECT_EQ(window.rate(), 0);
  window.add(10, 5);
  EXPECT_DOUBLE_EQ(window.rate(), 0.5);
  EXPECT_FALSE(window.full());
  window.add(10, 1);
  EXPECT_DOUBLE_EQ(window.rate(), 0.3);  // 6 of 20.
  EXPECT_TRUE(window.full());
  window.add(5, 5);  // 25 rollouts; without the first group 15, too few.
  EXPECT_DOUBLE_EQ(window.rate(), 11.0 / 25);
  window.add(5, 0);  // Without the first group 20.
  EXPECT_DOUBLE_EQ(window.rate(), 6.0 / 20);
  EXPECT_EQ(window.samples(), 20);
  window.add(0, 0);
  EXPECT_EQ(window.samples(), 20);
}

// --- Adaptive.

TEST(Adaptive, TheShareIsTheFormulas) {
  Adaptive::Config defaults;
  EXPECT_DOUBLE_EQ(adaptive_share(0, defaults), 0.1);
  EXPECT_DOUBLE_EQ(adaptive_share(0.1, defaults), 0.2);
  EXPECT_DOUBLE_EQ(adaptive_share(0.2, defaults), 0.3);
  EXPECT_DOUBLE_EQ(adaptive_share(0.4, defaults), 0.5);
  EXPECT_DOUBLE_EQ(adaptive_share(1, defaults), 0.5);
}

TEST(Adaptive, LevelTwoComesInAsLevelOneIsLearnt) {
  Adaptive sampler(tasks(10, 10), adaptive());
  EXPECT_EQ(level2_of(sampler, 100), 10);
  sampler.observe({{"t0", 1, 10, 2}, {"t1", 1, 10, 2}});  // 20 %: 0.1 + 0.4 x 0.5 = 0.3.
  EXPECT_EQ(level2_of(sampler, 100), 30);
  sampler.observe({{"t12", 2, 10, 0}});  // Of no matter.
  EXPECT_EQ(level2_of(sampler, 100), 30);
  sampler.observe({{"t2", 1, 10, 9}, {"t3", 1, 10, 9}});
  EXPECT_DOUBLE_EQ(sampler.metrics().at("sampler/level2_share"), 0.5);
  EXPECT_EQ(level2_of(sampler, 100), 50);
  EXPECT_DOUBLE_EQ(sampler.metrics().at("sampler/level1_accuracy"), 0.9);
  EXPECT_DOUBLE_EQ(sampler.metrics().at("sampler/level2_drawn_share"), 120.0 / 400);
  sampler.observe({{"t2", 1, 20, 0}});  // It can be forgotten, too.
  EXPECT_EQ(level2_of(sampler, 100), 10);
}

TEST(Adaptive, SmallStepsGetTheirShareOverTime) {
  Adaptive sampler(tasks(10, 10), adaptive());
  int count = 0;
  for (int step = 0; step < 50; ++step) count += level2_of(sampler, 4);
  EXPECT_EQ(count, 20);
}

// --- Gate.

TEST(Gate, RestsWhatIsAlwaysOrNeverSolvedAndTakesItBack) {
  Gate::Config own;
  own.level2_share = 0.2;
  own.groups = 2;
  own.rest = 3;
  Gate sampler(tasks(4, 1), own);
  sampler.observe({{"t0", 1, 10, 10}, {"t1", 1, 10, 0}, {"t2", 1, 10, 10}, {"t3", 1, 10, 4}});
  EXPECT_EQ(sampler.metrics().at("sampler/resting_share"), 0);
  sampler.observe({{"t0", 1, 10, 10}, {"t1", 1, 10, 0}, {"t2", 1, 10, 0}, {"t3", 1, 10, 4}});
  EXPECT_DOUBLE_EQ(sampler.metrics().at("sampler/resting_share"), 2.0 / 5);
  std::vector<std::string> drawn = draw(sampler, 10);  // Eight of level 1: four epochs of two.
  std::set<std::string> seen(drawn.begin(), drawn.end());
  EXPECT_EQ(seen, (std::set<std::string>{"t2", "t3", "t4"}));
  drawn = draw(sampler, 10);
  seen = std::set<std::string>(drawn.begin(), drawn.end());
  EXPECT_EQ(seen.size(), 5u) << "rested long enough";
}

TEST(Gate, AllMayRestAndThereAreStillTasks) {
  Gate::Config own;
  own.groups = 1;
  Gate sampler(tasks(2, 2), own);
  sampler.observe({{"t0", 1, 5, 5}, {"t1", 1, 5, 5}, {"t2", 2, 5, 0}, {"t3", 2, 5, 0}, {"unknown", 1, 5, 5}});
  EXPECT_EQ(sampler.metrics().at("sampler/resting_share"), 1);
  EXPECT_EQ(level2_of(sampler, 10), 5);
}

// --- Promote.

TEST(Promote, HalfOfAWindowUnlocksTheNextDifficulty) {
  Promote sampler(tasks(4, 6), promote(20));
  EXPECT_EQ(sampler.difficulty(), 1);
  sampler.observe({{"t0", 1, 10, 10}});
  EXPECT_EQ(sampler.difficulty(), 1) << "half a window";
  sampler.observe({{"t1", 1, 10, 0}});  // 10 of 20.
  EXPECT_EQ(sampler.difficulty(), 2);
  for (const Task* task : sampler.next(12)) EXPECT_EQ(task->difficulty, 2);
  sampler.observe({{"t2", 1, 40, 40}});  // Of a difficulty that is behind.
  EXPECT_EQ(sampler.difficulty(), 2);
  sampler.observe({{"t4", 2, 20, 9}});
  EXPECT_EQ(sampler.difficulty(), 2);
  sampler.observe({{"t6", 2, 20, 20}});
  EXPECT_EQ(sampler.difficulty(), 3);
  sampler.observe({{"t5", 2, 20, 20}});
  EXPECT_EQ(sampler.difficulty(), 3) << "the last one";
}

TEST(Promote, UnknownDifficultiesAreTheLevels) {
  auto own = tasks(2, 2);
  for (Task& task : own) task.difficulty = 0;
  Promote sampler(own, promote(5));
  EXPECT_EQ(level2_of(sampler, 4), 0);
  sampler.observe({{"t0", 1, 5, 5}});
  EXPECT_EQ(level2_of(sampler, 4), 4);
}

// --- All of them.

using Make = std::function<std::unique_ptr<TaskSampler>(std::vector<Task>)>;

std::map<std::string, Make> samplers() {
  return {{"adaptive", [](std::vector<Task> t) { return std::make_unique<Adaptive>(std::move(t), adaptive()); }},
          {"gate", [](std::vector<Task> t) { return std::make_unique<Gate>(std::move(t), Gate::Config()); }},
          {"promote", [](std::vector<Task> t) { return std::make_unique<Promote>(std::move(t), promote()); }}};
}

// A step as training does it, with made-up results.
std::vector<std::string> step(TaskSampler& sampler, Rng& rng) {
  std::vector<std::string> ids;
  std::vector<TaskResult> results;
  for (const Task* task : sampler.next(1 + rng.below(6))) {
    ids.push_back(task->id);
    int64_t correct = rng.below(3) == 0 ? rng.below(5) : 4 * rng.below(2);
    results.push_back({task->id, task->level, 4, correct});
  }
  sampler.observe(results);
  return ids;
}

TEST(Samplers, ResumeGoesOnExactly) {
  for (const auto& [name, make] : samplers()) {
    for (int before : {0, 1, 5, 30}) {
      auto whole = make(tasks(7, 6)), resumed = make(tasks(7, 6));
      Rng rng(11);
      for (int i = 0; i < before; ++i) step(*whole, rng);
      resumed->restore(Json::parse(whole->state().dump()));
      EXPECT_EQ(resumed->state(), whole->state()) << name;
      Rng other = rng;
      for (int i = 0; i < 30; ++i) ASSERT_EQ(step(*whole, rng), step(*resumed, other)) << name << " after " << before;
      EXPECT_EQ(resumed->metrics(), whole->metrics()) << name;
    }
  }
}

TEST(Samplers, AlwaysDealWhatIsAskedForAndLeaveNoLevelOut) {
  for (const auto& [name, make] : samplers()) {
    auto sampler = make(tasks(5, 4));
    Rng rng(3);
    std::set<std::string> seen;
    for (int i = 0; i < 400; ++i) {
      for (const std::string& id : step(*sampler, rng)) seen.insert(id);
      for (const auto& [metric, value] : sampler->metrics()) EXPECT_TRUE(value >= 0) << name << " " << metric;
    }
    EXPECT_EQ(seen.size(), 9u) << name;
    EXPECT_EQ(sampler->next(0).size(), 0u) << name;
  }
}

TEST(Samplers, RefuseStatesOfOthersAndTaskSetsThatLackALevel) {
  for (const auto& [name, make] : samplers()) {
    auto sampler = make(tasks(5, 4)), larger = make(tasks(6, 4));
    Json state = sampler->state();
    EXPECT_THROW(larger->restore(state), Error) << name;
    EXPECT_THROW(sampler->restore(Json::object()), Error) << name;
    for (const auto& [key, value] : state.items()) {
      Json without = state;
      without.erase(key);
      EXPECT_THROW(sampler->restore(without), Error) << name << " without " << key;
    }
    for (const auto& [other, make_other] : samplers()) {
      if (other == name) continue;
      EXPECT_THROW(make_other(tasks(5, 4))->restore(state), Error) << name << " into " << other;
    }
    state["dealt"][0] = -1;
    EXPECT_THROW(sampler->restore(state), Error) << name;
  }
  EXPECT_THROW(Adaptive(tasks(3, 0), adaptive()), Error);
  EXPECT_THROW(Gate(tasks(0, 3), {}), Error);
  EXPECT_THROW(Promote(tasks(0, 0), promote()), Error);
}

}  // namespace
}  // namespace tritonrl::curriculum::curriculum_test
