// SPDX-License-Identifier: Apache-2.0
// MultiInput: a CaseSource that tries a candidate on other values, seeds, sizes and another precision.
//
//   original   as the task is written, on the verifier's secret seeds; and its tiny case
//   doubled    the same inputs' distribution times two
//   reseeded   one more secret seed
//   larger     sizes half as large again, rebound jointly: those the task names, else the first proposal of
//              data/shape_variants.h
//   precision  inputs and weights in float16 instead of float32, or the other way round, held to the tolerance of the
//              precision they are in
//
// and the other value transforms of verify/case_source.h by name. All but the original are additional: what a task
// cannot do is skipped and said to be, and no candidate fails by it.
#pragma once

#include <string>
#include <vector>

#include "verify/case_source.h"

namespace tritonrl::multi_input {

// The five of the default list, and the other transforms.
std::vector<std::string> known_cases();

class MultiInput : public CaseSource {
 public:
  // The first `count` of `list` (0 = all of it). Throws Error (usage) for a list that does not begin with "original",
  // names a case that is not known or names one twice.
  MultiInput(const std::vector<std::string>& list, int64_t count, int64_t seeds);
  std::vector<CaseSpec> cases(const Task& task) const override;

 private:
  std::vector<std::string> list_;
  int64_t seeds_;
};

}  // namespace tritonrl::multi_input
