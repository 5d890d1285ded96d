// SPDX-License-Identifier: Apache-2.0
// SharedWork: the tasks of a step dealt out to several processes, and what each made of its own put together again, so
// that every one of them goes on with all of it.
//
//   Rollouts own = hold_conversations(policy, verifier, shared.mine(tasks), ...);
//   Rollouts all = shared.put_together(tasks, std::move(own));       // the same on every process
//
// The answers to a task are those that one process alone would have drawn: draws go by the task and by how often it
// came before, so a task that comes again is always the same process's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rollout/roll_out.h"

namespace tritonrl {

struct SharedWork {
  int64_t rank = 0, size = 1;
  // What every process gives, in the order of their ranks; each blocks until all have called it. Null = one process.
  std::function<std::vector<std::string>(std::string_view mine)> gather = {};

  std::vector<Task> mine(std::span<const Task> tasks) const;
  // Groups in the order of the tasks. Tokens and counts are sums, times those of the process that took longest.
  Rollouts put_together(std::span<const Task> tasks, Rollouts own) const;
  // Verdicts on `all` candidates, of which this process has those at rank, rank + size, ...
  std::vector<Verdict> put_together(size_t all, const std::vector<Verdict>& own) const;

 private:
  std::vector<int64_t> owners(std::span<const Task> tasks) const;
};

}  // namespace tritonrl
