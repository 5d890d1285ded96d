// SPDX-License-Identifier: Apache-2.0
// OwnTime: how long the sandboxed processes of one candidate have computed in a stage, and how long they may.
//
// The clock is processor time (JobAnswer::processor_s), never the wall's. What a candidate waits for, a queue, a lock,
// other candidates on the same cores, the judge, the task's reference, is not on it, so that a machine under load makes
// nobody late. Nor is time that it sleeps; a stage's deadline ends that.
//
// Kernels are compiled side by side and count as if kBeside processors had nothing else to do: their sum over kBeside,
// or the longest of them where that is more. An autotuner with thirty quick configurations is then not as slow as one
// kernel that takes as long as all of them, and what a candidate is charged does not depend on the machine's cores. A
// kernel that was compiled for another candidate before is charged as if it had not been: who came first must not
// matter.
//
// Thread rule: any thread.
#pragma once

#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "verify/finding.h"

namespace tritonrl {

class OwnTime {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  static constexpr int kBeside = 8;  // Compile jobs of one candidate at a time.

  explicit OwnTime(double allowed_s = kNoLimit) : allowed_s_(allowed_s) {}

  // `kernel` = which one was compiled in these seconds; "" = another job, of which one follows the other.
  void add(double seconds, const std::string& kernel = "");
  // What a kernel was charged with; 0 = nothing.
  double of_kernel(const std::string& kernel) const;
  double seconds() const;
  bool charged() const;  // Was any process of it run?
  // What the next job may take, in whole seconds (the kernel does not count finer) and at least one; kNoLimit.
  double left() const;
  bool late() const { return seconds() > allowed_s_; }
  Finding finding() const;  // Of one that is late.

 private:
  const double allowed_s_;
  mutable std::mutex mutex_;  // Guards all below.
  double alone_s_ = 0;
  std::map<std::string, double> kernels_;
  bool charged_ = false;
};

}  // namespace tritonrl
