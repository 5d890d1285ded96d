// SPDX-License-Identifier: Apache-2.0
// OwnTime: how long the sandboxed processes of one candidate have taken in a stage, and how long they may.
//
// The clock is that of its jobs (JobAnswer::own_s), never the wall's: it runs while they compute and while they sleep.
// What a candidate waits for, a queue, a lock, other candidates on the same cores, the judge, the task's reference, is
// not on it, so that a machine under load makes nobody late.
//
// Two limits hold: a stage's deadline, and what others' times allow (rollout/late_limits.h) where somebody asks that.
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

  explicit OwnTime(double late_s = kNoLimit) : late_s_(late_s) {}

  // What is taken from now on may take `seconds`; replaces the deadline before.
  void set_deadline(double seconds);
  // `kernel` = which one was compiled in these seconds; "" = another job, of which one follows the other.
  void add(double seconds, const std::string& kernel = "");
  // What a kernel was charged with; 0 = nothing.
  double of_kernel(const std::string& kernel) const;
  double seconds() const;
  bool charged() const;  // Was any process of it run?
  // What the next job may take, a kernel's among others beside it; kNoLimit.
  double left(bool of_kernel = false) const;
  bool over() const { return seconds() > limit(); }
  Finding finding() const;  // Of one that took too long: which of the two limits it met.

 private:
  double limit() const;

  const double late_s_;
  double deadline_s_ = kNoLimit, deadline_at_ = kNoLimit;  // As given; on this clock. One thread sets and reads it.
  mutable std::mutex mutex_;                               // Guards all below.
  double alone_s_ = 0;
  std::map<std::string, double> kernels_;
  bool charged_ = false;
};

}  // namespace tritonrl
