// SPDX-License-Identifier: Apache-2.0
// One job of a sandboxed child, run for a candidate: how it ended, and the blob it sent.
#pragma once

#include <string>

#include "verify/sandbox/blob.h"
#include "verify/sandbox/fork_server.h"
#include "verify/sandbox/own_time.h"

namespace tritonrl {

// Blocks. Leaves what the child sent in *blob when the outcome is a pass. A harness fault says that the worker was
// lost, and nothing about the candidate. What the job computes for is charged to `own`, as that of the kernel `kernel`
// ("" = of none), and ends the job when there is no more of it; null = nobody asks. Thread rule: any thread.
Finding run_job(WorkerPool& pool, ForkServerKind kind, Job job, Blob* blob, OwnTime* own = nullptr,
                const std::string& kernel = "");

}  // namespace tritonrl
