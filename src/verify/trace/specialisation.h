// SPDX-License-Identifier: Apache-2.0
// Specialisation: holds what each launch of a trace is compiled as (its TraceSpec) against what it is launched with.
//
// A launch is read twice: an interpreter runs the kernel on the launch's arguments, the compiler makes a cubin of the
// spec. Both are the recorder's, and so the candidate's; they must be two descriptions of one launch:
//
//   a parameter that is a constant   in the spec has the value that it has in the launch
//   one that is none                 has no constant in the spec; its type there is that of the launch's argument, and
//                                    where the compiler is told that it is divisible by 16, it is
//   num_warps, num_stages            are those of the launch; the architecture is the one that was asked for
//
// Thread rule: any thread.
#pragma once

#include "verify/trace/trace.h"

namespace tritonrl {

// Every choice of every launch that has a spec; `arch`: what was asked for, 90 for compute capability 9.0. Throws
// Tainted.
void check_specialisations(const TraceFile& file, int64_t arch);

// Is the cubin what its spec (TraceSpec::json) asked for, where a launch depends on it? Throws Tainted.
void check_compiled(const Json& spec, const TraceCubin& cubin);

}  // namespace tritonrl
