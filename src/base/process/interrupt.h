// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first asks long phases to stop at the next whole step, the second ends the process at once.
// After a SIGTERM, which comes from a scheduler that will not wait for long, the process ends after 20 seconds at the
// latest, wherever it is; the same command continues from the last whole phase.
#pragma once

namespace tritonrl {

// Installs the handlers. Called once, in main.
void handle_interrupts();
// As if someone had asked: another process of the same job was.
void interrupt();
// Has someone asked to stop? Cheap; for loops.
bool interrupted();
// Thrown where there is nothing left to return; main ends with exit code 130.
struct Interrupted {};

}  // namespace tritonrl
