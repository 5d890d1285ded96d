// SPDX-License-Identifier: Apache-2.0
// Trace flow: checks a trace as a whole, once all of its fields are read: every value is there before it is used, and
// lies within its memory.
//
// A tape has three sections: __init__, get_inputs() and forward(). Parameters that no step of __init__ makes are given
// from outside and there from the start; inputs that no step of get_inputs() makes are there only after the first two
// sections, so that neither computes on them.
#pragma once

#include "verify/trace/trace.h"

namespace tritonrl {

// Throws Tainted. Thread rule: any thread.
void check_flow(const CaseTrace& trace);

}  // namespace tritonrl
