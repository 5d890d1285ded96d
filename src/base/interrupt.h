// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first asks long phases to stop at the next whole step, the second ends the process at once.
#pragma once

namespace tritonrl {

// Installs the handlers. Called once, in main.
void handle_interrupts();
// Has someone asked to stop? Cheap; for loops.
bool interrupted();
// Thrown where there is nothing left to return; main ends with exit code 130.
struct Interrupted {};

}  // namespace tritonrl
