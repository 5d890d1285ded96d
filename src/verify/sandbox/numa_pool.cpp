// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/numa_pool.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

#include "base/check.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int kMaxCpu = 1 << 16;

bool allowed(const cpu_set_t& mine, int cpu) { return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mine); }

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string& part : split(trim(text), ',')) {
    size_t dash = part.find('-');
    std::string first = part.substr(0, dash), last = dash == std::string::npos ? first : part.substr(dash + 1);
    auto number = [](const std::string& digits) {
      bool fine = !digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == std::string::npos;
      return fine ? std::stoi(digits) : -1;
    };
    int low = number(first), high = number(last);
    if (low < 0 || high < low || high > kMaxCpu) return {};
    for (int cpu = low; cpu <= high; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<std::string> numa_nodes(const std::filesystem::path& root) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return {};
  std::vector<std::string> nodes;
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    std::string name = entry.path().filename().string();
    bool is_node = name.size() > 4 && name.compare(0, 4, "node") == 0 &&
                   name.find_first_not_of("0123456789", 4) == std::string::npos;
    if (is_node) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const auto& folder : folders) {
    std::ifstream file(folder / "cpulist");
    std::string list;
    std::getline(file, list);
    std::vector<std::string> usable;
    for (int cpu : parse_cpu_list(list)) {
      if (allowed(mine, cpu)) usable.push_back(std::to_string(cpu));
    }
    if (!usable.empty()) nodes.push_back(join(usable, ","));
  }
  return nodes;
}

NumaPool::NumaPool(std::vector<std::unique_ptr<WorkerPool>> pools) {
  CHECK(!pools.empty()) << "a pool of no workers";
  for (auto& pool : pools) {
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->pool = std::move(pool);
  }
}

JobAnswer NumaPool::run(ForkServerKind kind, Job job) {
  Node* node = nodes_[0].get();
  {
    std::lock_guard lock(mutex_);
    for (auto& one : nodes_) {
      if (one->under_way < node->under_way) node = one.get();
    }
    ++node->under_way;
  }
  struct Done {
    Node* node;
    ~Done() { --node->under_way; }
  } done{node};
  return node->pool->run(kind, std::move(job));
}

}  // namespace tritonrl
