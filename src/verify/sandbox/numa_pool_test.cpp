// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/numa_pool.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <latch>

#include "support/fake_worker.h"

namespace tritonrl::numa_pool_test {
namespace {

TEST(NumaNodes, ListsOfCpus) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), std::vector<int>{5});
  for (const char* bad : {"", "a", "3-1", "1-", "-2", "1,,2", "0-99999999", "1 2"}) {
    EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
  }
}

TEST(NumaNodes, OnlyThoseWithCpusOfOurs) {
  auto root = std::filesystem::path(testing::TempDir()) / "numa_nodes";
  std::filesystem::remove_all(root);
  auto node = [&](const std::string& name, const std::string& cpus) {
    std::filesystem::create_directories(root / name);
    std::ofstream(root / name / "cpulist") << cpus << "\n";
  };
  EXPECT_TRUE(numa_nodes(root).empty());
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int own = 0;
  while (!CPU_ISSET(own, &mine)) ++own;
  node("node0", std::to_string(own));
  node("node1", std::to_string(CPU_SETSIZE - 1));  // Not ours, on any machine these tests run on.
  node("nodes", "0");
  node("node2", "nonsense");
  EXPECT_EQ(numa_nodes(root), std::vector<std::string>{std::to_string(own)});
}

TEST(NumaPool, GivesAJobToWhoeverHasTheFewest) {
  constexpr int kPools = 3;
  std::latch everyone(kPools);
  std::vector<std::unique_ptr<WorkerPool>> pools;
  std::vector<FakePool*> fakes;
  for (int i = 0; i < kPools; ++i) {
    auto pool = std::make_unique<FakePool>([&everyone, i](const Job& job, const std::string&) {
      if (job.kind == "wait") everyone.arrive_and_wait();  // Ends only if each pool has one of these.
      JobAnswer answer;
      answer.code = i;
      return answer;
    });
    fakes.push_back(pool.get());
    pools.push_back(std::move(pool));
  }
  NumaPool numa(std::move(pools));
  std::vector<std::future<JobAnswer>> answers;
  for (int i = 0; i < kPools; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      return numa.run(ForkServerKind::kRecord, {"wait", {}, ""});
    }));
  }
  for (auto& answer : answers) answer.get();
  for (FakePool* fake : fakes) EXPECT_EQ(fake->count("wait"), 1);
  numa.run(ForkServerKind::kRecord, {"more", {}, ""});
  EXPECT_EQ(fakes[0]->count("more"), 1) << "all are idle again";
}

}  // namespace
}  // namespace tritonrl::numa_pool_test
