// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace tritonrl {

namespace {

volatile std::sig_atomic_t asked = 0;

void on_signal(int) {
  if (asked) ::_exit(130);
  asked = 1;
  constexpr char kText[] = "\nstopping after this step (again to stop at once)\n";
  [[maybe_unused]] auto n = ::write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return asked != 0; }

}  // namespace tritonrl
