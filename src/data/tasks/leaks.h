// SPDX-License-Identifier: Apache-2.0
// Leaks: which held-out tasks a training set gives away.
//
// Five classes, from plain to vague; a pair of tasks is named once, in the first that fits:
//   graph      the same operator graph, constants included (of the trace, or the one a task was made from)
//   source     the same source but for comments, names, types, white space and sizes
//   constants  the same operator graph, or source, under other constants
//   outline    the same operators on the same operands, whatever constants, ranks, dtypes and layout; held-out tasks of
//              level 2 and above alone, since single operators may be taught
//   near       at least kNearOverlap of the lines of one's code are in the other's: lines in a normal form without
//              names and numbers, whose order does not count; for sources of kMinLines or more
// Cost: one pass over each set, on all cores, and an index of the held-out one; 20,000 x 270 tasks take seconds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace tritonrl {

constexpr double kNearOverlap = 0.5;
constexpr size_t kMinLines = 5;

struct Leak {
  std::string kind;  // "graph", "source", "constants", "outline" or "near".
  std::string train_id, heldout_id;
  double overlap = 1;  // Shared lines / lines of the larger; of "near" only.
};

// In the order of `train`. Tasks that were not recorded are compared by their sources alone.
std::vector<Leak> find_leaks(const std::vector<Task>& train, const std::vector<Task>& heldout);

// The same, without the pairs whose kind is not in `kinds`. Throws Error (usage) that names the first few and `where`
// the sets come from, when any is left.
void refuse_leaks(const std::vector<Task>& train, const std::vector<Task>& heldout,
                  const std::vector<std::string>& kinds, const std::string& where);

// {"graph": 3, "source": 0, ...}: all classes.
std::map<std::string, int64_t> count_leaks(const std::vector<Leak>& leaks);

}  // namespace tritonrl
