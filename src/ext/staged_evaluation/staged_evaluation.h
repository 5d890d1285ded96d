// SPDX-License-Identifier: Apache-2.0
// Staged: a StageOrder that goes from cheap to expensive and stops at the first stage that does not pass.
//
//   extract and syntax (microseconds) -> compile (tens of milliseconds, and Triton's compiler) -> tiny_run (small
//   shapes) -> full_run -> time
//
// The same candidates pass as when every stage is run (core's EveryStage), and a failing one stops at the same stage
// with the same outcome: what is saved is the work after the first failure.
#pragma once

#include "verify/stage_order.h"

namespace tritonrl::staged_evaluation {

class Staged : public StageOrder {
 public:
  std::optional<Stage> next(const std::vector<StageResult>& done) const override;
};

}  // namespace tritonrl::staged_evaluation
