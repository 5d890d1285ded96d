// SPDX-License-Identifier: Apache-2.0
// NumaPool: one pool of workers for each NUMA node, so that a forked child and the pages it shares with its fork server
// are on one node. On a machine with one node there is one pool, and nothing is pinned.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verify/sandbox/fork_server.h"

namespace tritonrl {

// Which CPUs of each node this process may use, as a list for taskset ("0-3,8"); nodes without any are left out. Empty
// where the machine does not say.
std::vector<std::string> numa_nodes(const std::filesystem::path& root = "/sys/devices/system/node");

// Of "0-3,8": 0, 1, 2, 3, 8. Empty when it is malformed.
std::vector<int> parse_cpu_list(const std::string& text);

class NumaPool : public WorkerPool {
 public:
  // REQUIRES: at least one pool.
  explicit NumaPool(std::vector<std::unique_ptr<WorkerPool>> pools);
  // On the pool with the fewest jobs under way.
  JobAnswer run(ForkServerKind kind, Job job) override;

 private:
  struct Node {
    std::unique_ptr<WorkerPool> pool;
    std::atomic<int64_t> under_way{0};
  };
  std::vector<std::unique_ptr<Node>> nodes_;
  std::mutex mutex_;
};

}  // namespace tritonrl
