// SPDX-License-Identifier: Apache-2.0
// Trace flow: what a trace's fields mean, once all of them are read: every value is there before it is used, and in its
// memory.
//
// Three sections, then what is given from outside: parameters that no step of __init__ makes are there from the start,
// inputs that no step of get_inputs() makes only after those two sections, so that neither computes on them.
#pragma once

#include "verify/trace/trace.h"

namespace tritonrl {

// Throws Tainted. Thread rule: any thread.
void check_flow(const CaseTrace& trace);

}  // namespace tritonrl
