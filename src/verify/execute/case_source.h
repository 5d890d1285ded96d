// SPDX-License-Identifier: Apache-2.0
// CaseSource: the seam that says on which cases a candidate is tried. A case = sizes and an input stream.
//
// The default gives the original case and, where the task names tiny sizes, the tiny one. Extensions (multi-input
// testing) give more; core does not know them.
//
// Other sizes and another precision need a trace of their own; other values and seeds do not: such a case names the
// one whose trace serves. What a task cannot do (its reference fails there) is no candidate's fault: an additional
// case is skipped then, and the verdict says so.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace tritonrl {

struct CaseSpec {
  std::string name;                               // "full" and "tiny" come from the default; unique within a task.
  std::map<std::string, int64_t> constants = {};  // Rebinding of the task's size constants; empty = as written.
  bool tiny = false;                              // Belongs to tiny_run; all others belong to full_run.
  int64_t input_seeds = 1;                        // How many secret input seeds it is run on.
  std::string values = {};                        // One of kValueTransforms; "" = as get_inputs() draws them.
  bool other_precision = false;   // Inputs and weights: float32 becomes float16 and the other way round.
  bool other_scalars = false;     // Floating numbers that get_inputs() gives: three quarters of them.
  std::string trace = {};         // The case whose trace serves; "" = its own.
  bool additional = false;        // Skipped where the reference cannot do it.
  std::string not_possible = {};  // Why the task has no such case, known beforehand; "" = it has.
  std::string instead_of = {};    // The case that it stands in for: skipped unless that one is.

  const std::string& recorded_as() const { return trace.empty() ? name : trace; }
};

// What may be made of the inputs that get_inputs() draws; judge/values.cpp defines them.
inline constexpr std::array<const char*, 11> kValueTransforms = {"doubled",  "negated",    "small",      "magnitudes",
                                                                 "uniform",  "large",      "heavy_tail", "sparse",
                                                                 "integers", "cancelling", "equal_rows"};

class CaseSource {
 public:
  virtual ~CaseSource() = default;
  // REQUIRES of implementations: a first case that is neither additional nor tiny; at most one tiny case, which is not
  // additional; a case whose trace another one names is not additional either. Thread rule: any thread.
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
