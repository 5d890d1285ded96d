// SPDX-License-Identifier: Apache-2.0
#include "rollout/shared_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "base/text.h"

namespace tritonrl::shared_work_test {
namespace {

std::vector<Task> tasks_of(const std::vector<std::string>& ids) {
  std::vector<Task> tasks;
  for (const std::string& id : ids) {
    Task task;
    task.id = id;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<std::string> ids_of(const std::vector<Task>& tasks) {
  std::vector<std::string> ids;
  for (const Task& task : tasks) ids.push_back(task.id);
  return ids;
}

// Answers that tell who drew them, to which task, and the how manieth of that task they are.
Rollouts drawn(const std::vector<Task>& tasks, int64_t rank) {
  Rollouts out;
  for (const Task& task : tasks) {
    auto before =
        std::count_if(out.groups.begin(), out.groups.end(), [&](const Group& g) { return g.task.id == task.id; });
    Group& group = out.groups.emplace_back(Group{task, {}});
    for (int64_t s = 0; s < 2; ++s) {
      Sample sample;
      sample.rollout = {
          {7, static_cast<int32_t>(rank)}, {-0.1f, -1e-7f}, s == 1, cat(task.id, "#", before, "#", s), {1, 2, 3}};
      sample.rollout.trajectory = s;
      sample.rollout.turn = 1 + s;
      sample.rollout.feedback = "next\n";
      sample.verdict.outcome = Outcome::kPass;
      sample.verdict.speedup = 0.5 + static_cast<double>(s);
      sample.verdict.code = "code of " + task.id;
      group.samples.push_back(std::move(sample));
    }
  }
  out.times.rollout = 1.5 * static_cast<double>(rank + 1);
  out.times.drawn = 10;
  out.tokens = 100 + rank;
  out.too_long = 1;
  return out;
}

// Runs `body` as so many processes would.
template <class F>
void together(int64_t size, const F& body) {
  std::vector<std::string> given(static_cast<size_t>(size));
  std::barrier<> meeting(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      body(SharedWork{rank, size, [&, rank](std::string_view mine) {
                        given[static_cast<size_t>(rank)] = mine;
                        meeting.arrive_and_wait();
                        auto all = given;
                        meeting.arrive_and_wait();
                        return all;
                      }});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedWork, EveryTaskIsOnesAndOneThatComesAgainIsTheSameOnes) {
  auto tasks = tasks_of({"a", "b", "a", "c", "d", "b", "a"});
  EXPECT_EQ(ids_of((SharedWork{0, 3}).mine(tasks)), (std::vector<std::string>{"a", "a", "d", "a"}));
  EXPECT_EQ(ids_of((SharedWork{1, 3}).mine(tasks)), (std::vector<std::string>{"b", "b"}));
  EXPECT_EQ(ids_of((SharedWork{2, 3}).mine(tasks)), (std::vector<std::string>{"c"}));
  EXPECT_EQ(ids_of(SharedWork{}.mine(tasks)), ids_of(tasks));
  EXPECT_TRUE((SharedWork{4, 5}).mine(tasks).empty());
}

TEST(SharedWork, EveryoneHasAllInTheOrderOfTheTasks) {
  auto tasks = tasks_of({"a", "b", "a", "c", "d", "b", "a"});
  Rollouts alone = drawn(tasks, 0);
  for (int64_t size : {2, 3, 5}) {
    together(size, [&](const SharedWork& shared) {
      Rollouts all = shared.put_together(tasks, drawn(shared.mine(tasks), shared.rank));
      ASSERT_EQ(all.groups.size(), tasks.size());
      for (size_t g = 0; g < tasks.size(); ++g) {
        EXPECT_EQ(all.groups[g].task.id, tasks[g].id);
        ASSERT_EQ(all.groups[g].samples.size(), 2u);
        for (size_t s = 0; s < 2; ++s) {
          const Sample &got = all.groups[g].samples[s], &want = alone.groups[g].samples[s];
          EXPECT_EQ(got.rollout.text, want.rollout.text);
          EXPECT_EQ(got.rollout.log_probs, want.rollout.log_probs);
          EXPECT_EQ(got.rollout.prompt, want.rollout.prompt);
          EXPECT_EQ(got.rollout.finished, want.rollout.finished);
          EXPECT_EQ(got.rollout.trajectory, want.rollout.trajectory);
          EXPECT_EQ(got.rollout.turn, want.rollout.turn);
          EXPECT_EQ(got.rollout.feedback, want.rollout.feedback);
          EXPECT_EQ(got.verdict.outcome, Outcome::kPass);
          EXPECT_EQ(got.verdict.speedup, want.verdict.speedup);
          EXPECT_EQ(got.verdict.code, want.verdict.code);
        }
      }
      EXPECT_EQ(all.times.rollout, 1.5 * static_cast<double>(size)) << "of who took longest";
      EXPECT_EQ(all.times.drawn, 10 * size);
      EXPECT_EQ(all.tokens, 100 * size + size * (size - 1) / 2);
      EXPECT_EQ(all.too_long, size);
    });
  }
}

TEST(SharedWork, VerdictsAreDealtOutOneByOne) {
  together(3, [](const SharedWork& shared) {
    std::vector<Verdict> own;
    for (size_t i = static_cast<size_t>(shared.rank); i < 8; i += 3) {
      own.emplace_back().outcome = Outcome::kPass;
      own.back().code = cat("c", i);
    }
    auto all = shared.put_together(8, own);
    ASSERT_EQ(all.size(), 8u);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(all[i].code, cat("c", i));
  });
}

}  // namespace
}  // namespace tritonrl::shared_work_test
