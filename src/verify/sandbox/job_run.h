// SPDX-License-Identifier: Apache-2.0
// One job of a sandboxed child, run for a candidate: how it ended, and the blob it sent.
#pragma once

#include "verify/sandbox/blob.h"
#include "verify/sandbox/fork_server.h"

namespace tritonrl {

// Blocks. Leaves what the child sent in *blob when the outcome is a pass. A harness fault says that the worker was
// lost, and nothing about the candidate. Thread rule: any thread.
Finding run_job(WorkerPool& pool, ForkServerKind kind, Job job, Blob* blob);

}  // namespace tritonrl
