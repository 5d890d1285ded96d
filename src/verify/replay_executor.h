// SPDX-License-Identifier: Apache-2.0
// ReplayExecutor: a candidate on a GPU, which it holds from begin() on; see executor.h.
#pragma once

#include <optional>

#include "verify/executor.h"

namespace tritonrl {

class ReplayExecutor : public Executor {
 public:
  explicit ReplayExecutor(GpuLanes& lanes) : lanes_(lanes) {}

  VerifyPath path() const override { return VerifyPath::kReplay; }
  bool can_time() const override { return true; }
  bool runs_cubins() const override { return true; }
  double most_growth() const override;
  bool runs_init() const override { return true; }
  GpuAnswer begin(const Reference& reference, const PlanFile& recording, const KernelSet& kernels) override;
  GpuAnswer run(const GpuRun& run) override;
  TimeAnswer time(GpuTiming timing, const TimingProtocol& protocol) override;

 private:
  GpuAnswer kept(GpuAnswer answer);
  GpuLanes& lanes_;
  std::optional<GpuLease> lane_;
};

}  // namespace tritonrl
