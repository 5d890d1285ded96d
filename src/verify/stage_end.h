// SPDX-License-Identifier: Apache-2.0
// StageEnd: how a stage, or a job that a stage needed, ended.
#pragma once

#include <string>

#include "verify/verdict.h"

namespace tritonrl {

struct StageEnd {
  Outcome outcome = Outcome::kPass;
  std::string message;
};

}  // namespace tritonrl
