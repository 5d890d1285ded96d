// SPDX-License-Identifier: Apache-2.0
// InitValues: what a trace's __init__ leaves for forward().
//
// Whoever runs a trace draws its weights by running __init__'s section, puts the task's values in the place of those it
// recognises, and where others are made of them (a packed weight, a transposed copy), runs the section once more with
// the task's values in place as soon as they are complete: a pin.
#pragma once

#include <map>
#include <vector>

#include "verify/trace/trace.h"

namespace tritonrl {

struct InitValues {
  std::vector<int64_t> used;        // Made by __init__, no parameters, and read or returned later. By id.
  std::map<int64_t, size_t> whole;  // Made by __init__: value -> the step after which it holds what forward() finds.
};
InitValues init_values(const CaseTrace& trace);
// The value that another one is a cast of, in another floating dtype (a module's weights are cast after __init__ where
// a case has another precision); -1 = it is none.
int64_t cast_from(const CaseTrace& trace, int64_t value);

// Does __init__ make other memory of one of these values once it is complete? What is one of them itself does not
// count.
bool makes_more_of(const CaseTrace& trace, const InitValues& made, const std::vector<int64_t>& values);

// Is a candidate's parameter one of the task's: of the same name, shape and dtype? Then it gets the task's value,
// however it was made (the judge decides by the same: Judge::match).
bool is_the_tasks(const CaseTrace& trace, const TraceParameter& own, const CaseTrace& reference);

// Made by __init__, no parameters nor views of those, a whole tensor each, like one of the reference's parameters in
// shape, and of a floating dtype where that is: what may be a weight of the task's. By id, a few dozen at most.
std::vector<int64_t> like_parameters(const CaseTrace& trace, const InitValues& made, const CaseTrace& reference);

// Values among step.reads that an operator may write to, by its name: what an operator in place is given first, and all
// that is given to those that write elsewhere (held against PyTorch's schemas by a test). What a step gives is not
// among them.
std::vector<int64_t> written_by(const TraceStep& step);

}  // namespace tritonrl
