// SPDX-License-Identifier: Apache-2.0
// CaseSource: the seam that says on which cases a candidate is tried. A case = sizes and an input stream.
//
// The default gives the original case and, where the task names tiny sizes, the tiny one. Extensions (multi-input
// testing) give more; core does not know them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/task.h"

namespace tritonrl {

struct CaseSpec {
  std::string name;                          // "full" and "tiny" come from the default; unique within a task.
  std::map<std::string, int64_t> constants;  // Rebinding of the task's size constants; empty = as written.
  bool tiny = false;                         // Belongs to tiny_run; all others belong to full_run.
  int64_t input_seeds = 1;                   // How many secret input seeds it is run on.
};

class CaseSource {
 public:
  virtual ~CaseSource() = default;
  // REQUIRES of implementations: at least one case that is not tiny; at most one tiny case. Thread rule: any thread.
  virtual std::vector<CaseSpec> cases(const Task& task) const = 0;
};

// The original case on `seeds` inputs, plus the tiny case where the task has one.
class OriginalCases : public CaseSource {
 public:
  explicit OriginalCases(int64_t seeds) : seeds_(seeds) {}
  std::vector<CaseSpec> cases(const Task& task) const override {
    std::vector<CaseSpec> out{{"full", {}, false, seeds_}};
    if (!task.tiny.empty()) out.push_back({"tiny", task.tiny, true, 1});
    return out;
  }

 private:
  int64_t seeds_;
};

}  // namespace tritonrl
