// SPDX-License-Identifier: Apache-2.0
// Exclusion: a benchmark that nobody may be trained on, as what its tasks compute.
//
// A training task gives a benchmark's task away when both have the same outline: the same operators on the same
// operands, whatever constants, sizes, ranks, dtypes and layout (graphs::outline). That is held against the benchmark's
// tasks of level 2 and above, as given or as recorded; single operators may be taught. The benchmark itself need not be
// shipped: users import it (`tritonrl data import` records what each task computes) and name the file.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace tritonrl {

struct Exclusion {
  std::string file, hash;                       // Path as given; SHA-256 of what it holds. "" = nothing is excluded.
  int64_t tasks = 0;                            // Of any level.
  std::map<std::string, std::string> outlines;  // Outline -> id of the first task that has it.
  int64_t unknown = 0;                          // Tasks of level 2 and above of which nobody knows what they compute.
  std::set<std::string> sources;                // SHA-256 of each task's source.

  bool empty() const { return file.empty(); }
  // Of the tasks of level 2 and above, "TRAIN ~ BENCHMARK" for each whose outline is excluded.
  std::vector<std::string> pairs(const std::vector<Task>& tasks) const;
};

// "" gives an empty one. Throws Error (usage) where there are tasks of level 2 and above, and none says what it
// computes.
Exclusion load_exclusion(const std::filesystem::path& file);

}  // namespace tritonrl
