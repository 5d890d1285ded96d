// SPDX-License-Identifier: Apache-2.0
// MultiInput: a CaseSource that tries a candidate on other values, seeds, sizes and another precision.
//
//   original   as the task is written, on the verifier's secret seeds; and its tiny case
//   doubled    the same inputs' distribution times two
//   reseeded   one more secret seed
//   larger     sizes half as large again, rebound jointly: those the task names, else the first proposal of
//              data/tasks/shape_variants.h; floating numbers among the arguments are others, too
//   precision  inputs and weights in float16 instead of float32, or the other way round, held to the tolerance of the
//              precision they are in
//
// and the other value transforms of verify/execute/case_source.h by name, at the tiny sizes where a task has them. All
// but the original are additional: what a task cannot do is skipped and said to be, and no candidate fails by it.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "verify/execute/case_source.h"

namespace tritonrl::multi_input {

// The five of the default list, and the other transforms.
std::vector<std::string> known_cases();

class MultiInput : public CaseSource {
 public:
  struct Config {
    std::vector<std::string> list = {"original", "doubled", "reseeded", "larger",    "precision",
                                     "uniform",  "small",   "large",    "magnitudes"};
    int64_t count = 0;

    template <class V>
    void for_each_field(V& v) {
      v("list", list, "the cases, by name; \"original\" first");
      v("count", count, "how many of the list, from its beginning; 0 = all");
    }
    // Throws Error (usage) for a list that does not begin with "original", names a case that is not known or names one
    // twice, and for a count beyond it.
    void validate() const;
  };

  // Throws as validate().
  MultiInput(int64_t seeds, const Config& config);
  std::vector<CaseSpec> cases(const Task& task) const override;

 private:
  std::vector<std::string> list_;
  int64_t seeds_;
};

}  // namespace tritonrl::multi_input
