// SPDX-License-Identifier: Apache-2.0
// OperatorCoverage: whether the operators that other people's tasks use are ones for which the stream writes solutions.
//
// Operators are compared by the names under which they are called, as filters compare them (data/tasks/task_facts.h):
// what counts as known is read out of sources that the stream itself writes, one operator at a time. Known operators
// need not be known with these attributes, ranks or in this combination: the counts are an upper bound.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace tritonrl::graphs {

struct OperatorCoverage {
  struct Level {
    int64_t tasks = 0, covered = 0;  // Covered: every operator is known.
  };
  std::map<int, Level> levels;
  std::map<std::string, std::vector<std::string>> missing;  // Operator -> ids of the tasks that need it.
};

// Names of all operators that the stream draws and writes solutions for. Takes a second or two the first time.
const std::set<std::string>& solved_operators();
OperatorCoverage operator_coverage(const std::vector<Task>& tasks);

// "level 1: 98 of 100 references ..." a line a level, then what is missing, the most wanted first.
std::string to_text(const OperatorCoverage& coverage);

}  // namespace tritonrl::graphs
