// SPDX-License-Identifier: Apache-2.0
// Which of the verifier's checks turned a candidate away for how it tried, rather than for what it got wrong.
#pragma once

#include "verify/verdict.h"

namespace tritonrl {

// The check behind a verdict of rule_break or tampered ("" for every other outcome):
//   no_launch, empty_grid, launch_in_init  nothing is launched where it counts
//   library_calls                          library operations do part of the work
//   output_not_reached, output_is_input    no launch has a hand in an output
//   same_without_launches                  leaving the launches out changes nothing
//   kernel_text                            a kernel's text reaches beyond Triton
//   too_fast                               ends sooner than its outputs could have been written
//   forged_result                          what came out of the sandbox cannot be honest (every other tampered)
//   other_rule                             a rule without a name here
const char* detector_of(const Verdict& verdict);

}  // namespace tritonrl
