// SPDX-License-Identifier: Apache-2.0
// tritonrl_judge DEVICE REPLAY_PROGRAM: the judge's process; started by the verifier, see judge.h.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "verify/gpu/judge.h"

int main(int argc, char** argv) {
  using namespace tritonrl;
  if (argc != 3) {
    std::fprintf(stderr, "tritonrl_judge is started by tritonrl verify\n");
    return 2;
  }
  try {
    auto verifier = Channel::of_parent();
    Judge(*verifier, {at::Device(argv[1]), argv[2]}).serve();
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tritonrl_judge: %s\n", error.what());
    ::_exit(3);
  }
}
