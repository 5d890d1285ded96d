// SPDX-License-Identifier: Apache-2.0
// A plan in words for a solution that is there, so that a model can be taught to plan before it writes (data.plan):
// what each kernel reads, computes and writes, and how its programs are laid out. All of it is read out of the
// solution's text, so the plan never says what the code does not do.
#pragma once

#include <string>

namespace tritonrl {

// A paragraph and a line for each kernel that is launched, in that order; "" where no launch is found.
std::string plan_of(const std::string& source, const std::string& solution);

}  // namespace tritonrl
