// SPDX-License-Identifier: Apache-2.0
#include "base/process/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace tritonrl {

namespace {

volatile std::sig_atomic_t asked = 0, signalled = 0;  // By anyone; by a signal to this process.

constexpr unsigned kGraceSeconds = 20;

void say(const char* text, size_t length) { [[maybe_unused]] auto n = ::write(STDERR_FILENO, text, length); }

// A file is either whole or not there at any moment, so leaving in the middle costs no more than the phase.
void on_alarm(int) {
  constexpr char kText[] = "\nthe step took too long to end: leaving in the middle of it\n";
  say(kText, sizeof kText - 1);
  ::_exit(130);
}

void on_signal(int signal) {
  if (signalled) ::_exit(130);
  asked = 1;
  signalled = 1;
  if (signal == SIGTERM) ::alarm(kGraceSeconds);
  constexpr char kText[] = "\nstopping after this step (again to stop at once)\n";
  say(kText, sizeof kText - 1);
}

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
}

void interrupt() { asked = 1; }

bool interrupted() { return asked != 0; }

}  // namespace tritonrl
