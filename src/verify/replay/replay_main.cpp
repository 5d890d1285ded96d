// SPDX-License-Identifier: Apache-2.0
// tritonrl_replay DEVICE: the replayer's process; started by the judge, see replayer.h.
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "verify/replay/replayer.h"

int main(int argc, char** argv) {
  using namespace tritonrl;
  if (argc != 2) {
    std::fprintf(stderr, "tritonrl_replay is started by tritonrl_judge\n");
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // The judge starts replayers from its one thread.
  try {
    at::Device device(argv[1]);
    if (device.is_cuda() && cudaSetDevice(device.index()) != cudaSuccess)
      throw environment_error("no such GPU", argv[1]);
    auto judge = Channel::of_parent();
    Replayer(*judge, device).serve();
    ::_exit(0);  // A spoilt context may hang in its destructors.
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tritonrl_replay: %s\n", error.what());
    ::_exit(3);
  }
}
