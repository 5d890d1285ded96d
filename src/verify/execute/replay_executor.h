// SPDX-License-Identifier: Apache-2.0
// ReplayExecutor: a candidate on a GPU, which it holds from begin() on; see executor.h.
#pragma once

#include <optional>

#include "verify/execute/executor.h"

namespace tritonrl {

class ReplayExecutor : public Executor {
 public:
  explicit ReplayExecutor(JudgeSlots& slots) : slots_(slots) {}

  VerifyPath path() const override { return VerifyPath::kReplay; }
  bool can_time() const override { return true; }
  bool runs_cubins() const override { return true; }
  double most_growth() const override;
  JudgeAnswer begin(const Reference& reference, const TraceFile& trace, const KernelSet& kernels) override;
  JudgeAnswer run(const JudgeRun& run, OwnTime* own) override;
  TimeAnswer time(JudgeTiming timing, const TimingProtocol& protocol) override;

 private:
  JudgeAnswer kept(JudgeAnswer answer);
  JudgeSlots& slots_;
  std::optional<JudgeLease> slot_;
};

}  // namespace tritonrl
