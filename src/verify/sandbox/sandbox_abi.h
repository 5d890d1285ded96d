// SPDX-License-Identifier: Apache-2.0
// C interface of libtritonrl_sandbox.so: what a fork server's children call to lock themselves in.
//
// Order for one job: the fork server forks a monitor, the monitor calls tritonrl_sandbox_monitor and forks again, the
// grandchild calls tritonrl_sandbox_enter before it touches a byte of a candidate, and the monitor watches it with
// tritonrl_sandbox_watch until it ends. All are called in single-threaded processes only. sandbox.h has the whole
// picture.
#pragma once

#include <stdint.h>

#define TRITONRL_EXPORT __attribute__((visibility("default")))

extern "C" {

enum TritonrlEndedBy { TRITONRL_ENDED_ITSELF = 0, TRITONRL_ENDED_BY_MEMORY = 1, TRITONRL_ENDED_BY_DEADLINE = 2 };

// How a job ended, and what it took (job_watch.h).
struct TritonrlJobReport {
  int32_t wait_status;      // As waitpid() has it.
  int32_t ended_by;         // Who killed it, if anybody did: a TritonrlEndedBy.
  double processor_s;       // Processor time of the first process and of those that were waited for.
  double own_s;             // What the job's own clock says.
  uint64_t peak_bytes;      // Most memory that the job was seen to hold.
  int32_t machine_ran_out;  // 1 = the kernel killed a process of this machine, whichever, for want of memory.
};

// In the monitor: new user, PID, IPC and UTS namespaces (the PID namespace starts with the next fork); no network is
// there already.
// 0, or -errno when a protection is missing and TRITONRL_SANDBOX_WEAK is not set to 1 in the environment.
TRITONRL_EXPORT int tritonrl_sandbox_monitor(void);

// In the monitor, with SIGTERM and SIGCHLD blocked since before the fork: waits for the job whose first process is
// `first` and kills it when all its processes hold more than memory_bytes together beyond what it began with, when its
// own clock passes deadline_s, or on SIGTERM. The first process is waited for; whoever is left over is not. 0 or
// -errno.
TRITONRL_EXPORT int tritonrl_sandbox_watch(int first, uint64_t memory_bytes, double deadline_s,
                                           struct TritonrlJobReport* report);

// In the grandchild: everything else, in a mount namespace of its own; there is no way back. memory_bytes = what each
// of its processes may allocate beyond what the first has already; tmp_bytes = size of its private /tmp and of the
// largest file; keep_fd_a/b = descriptors to keep beside 0, 1 and 2 (-1 = none); processor_s = seconds of processor
// time for each of its processes, at least 1. Beyond them the kernel sends SIGKILL: the first process of a PID
// namespace, which the job is, ignores every other signal that it has no handler for. 0, or -errno as above.
TRITONRL_EXPORT int tritonrl_sandbox_enter(uint64_t memory_bytes, uint64_t tmp_bytes, int keep_fd_a, int keep_fd_b,
                                           int processor_s);

// Names of the protections that the calls above could not put up, separated by commas; "" = all are up. Static memory.
TRITONRL_EXPORT const char* tritonrl_sandbox_missing(void);

}  // extern "C"
