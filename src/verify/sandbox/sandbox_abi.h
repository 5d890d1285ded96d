// SPDX-License-Identifier: Apache-2.0
// C interface of libtritonrl_sandbox.so: what a fork server's children call to lock themselves in.
//
// Order for one job: the fork server forks a monitor, the monitor calls tritonrl_sandbox_monitor and forks again, the
// grandchild calls tritonrl_sandbox_enter before it touches a byte of a candidate. Both are called in single-threaded
// processes only. sandbox.h has the whole picture.
#pragma once

#include <stdint.h>

#define TRITONRL_EXPORT __attribute__((visibility("default")))

extern "C" {

// In the monitor: new user, PID, IPC and UTS namespaces (the PID namespace starts with the next fork); no network is
// there already.
// 0, or -errno when a protection is missing and TRITONRL_SANDBOX_WEAK is not set to 1 in the environment.
TRITONRL_EXPORT int tritonrl_sandbox_monitor(void);

// In the grandchild: everything else, in a mount namespace of its own; there is no way back. memory_bytes = what the
// job may allocate beyond what the process has already; tmp_bytes = size of its private /tmp and of the largest file;
// keep_fd_a/b = descriptors to keep beside 0, 1 and 2 (-1 = none); processor_s = seconds of processor time for each of
// its processes, at least 1. Beyond them the kernel sends SIGKILL: the first process of a PID namespace, which the job
// is, ignores every other signal that it has no handler for. 0, or -errno as above.
TRITONRL_EXPORT int tritonrl_sandbox_enter(uint64_t memory_bytes, uint64_t tmp_bytes, int keep_fd_a, int keep_fd_b,
                                           int processor_s);

// Names of the protections that the calls above could not put up, separated by commas; "" = all are up. Static memory.
TRITONRL_EXPORT const char* tritonrl_sandbox_missing(void);

}  // extern "C"
