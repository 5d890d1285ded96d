// SPDX-License-Identifier: Apache-2.0
// JobWatch: what a job, the first process and all that it started, holds in memory and how far its own clock has run.
// The monitor looks from outside, through /proc, every few milliseconds; a job cannot answer for itself.
//
// Memory: limits of a process (RLIMIT_DATA) hold for each process alone. Here the job's processes are counted together,
// pages that they share once, those that they share with the fork server not at all, with the files of its /tmp on top.
// The sum of what each has resident is an upper bound and costs microseconds; only where that is too much are the pages
// counted for real (smaps_rollup, milliseconds): a tenth of the time, and whenever the bound has grown by a quarter of
// the cap. What a process discards of the memory that it began with it may take again once: the count may fall short by
// that much, never exceed the truth.
//
// Time: the job's own clock runs while it computes (as fast as its processes together do) and while it sleeps, not
// while it could run and has no processor: that is the machine's load, for which nobody is to blame. The kernel tells
// how long a thread has waited for a processor (schedstat); where it does not, the clock is the wall's. A job of more
// than kMostWaiting threads waits for itself, and its clock is at least the wall's.
//
// Thread rule: one thread, the job's parent.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <map>
#include <vector>

namespace tritonrl {

class JobWatch {
 public:
  static constexpr double kEveryS = 0.025;      // How often to look().
  static constexpr double kWindowS = 0.1;       // Of the clock: processor time is told in hundredths of a second.
  static constexpr size_t kMostWaiting = 8;     // Threads of a job that may wait for a processor without fault.
  static constexpr size_t kMostProcesses = 64;  // Far beyond RLIMIT_NPROC, which does not hold for root without a jail.

  // `first` = the job's first process; `cap_bytes` = what counting pages for real is worth it for.
  JobWatch(pid_t first, uint64_t cap_bytes);

  void look();
  // After the first process has ended and before it is waited for, or with what it used up as wait4() said.
  void finish(double processor_s);
  uint64_t memory_bytes() const { return memory_; }  // As of the last look.
  uint64_t peak_bytes() const { return peak_; }      // Of all looks.
  double own_s() const { return own_s_; }
  bool multiplies() const { return processes_.size() >= kMostProcesses; }  // A fork bomb that no limit holds.

 private:
  struct Process {
    pid_t id;
    uint64_t anonymous;
  };
  void walk();
  void advance(double now);
  uint64_t count_pages() const;

  const pid_t first_;
  const uint64_t cap_;
  uint64_t inherited_ = 0;  // Anonymous memory that the first process began with.
  std::vector<Process> processes_;
  std::map<pid_t, uint64_t> waited_, waited_before_;  // Thread -> ns that it waited for a processor: now, last window.
  double processor_s_ = 0, processor_before_ = 0;     // Of all processes: now, last window.
  double window_began_;
  double own_s_ = 0;
  double count_again_at_ = 0;
  uint64_t counted_ = 0, counted_bound_ = 0;  // Pages as counted last, and the upper bound at that time.
  uint64_t memory_ = 0, peak_ = 0;
};

// Processes that the kernel has killed on this machine for want of memory; -1 = it does not say.
int64_t out_of_memory_kills();

}  // namespace tritonrl
