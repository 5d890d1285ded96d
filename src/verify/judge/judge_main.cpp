// SPDX-License-Identifier: Apache-2.0
// tritonrl_judge DEVICE REPLAY_PROGRAM: the judge's process; started by the verifier, see judge.h.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "verify/judge/judge.h"

int main(int argc, char** argv) {
  using namespace tritonrl;
  if (argc != 3) {
    std::fprintf(stderr, "tritonrl_judge is started by tritonrl verify\n");
    return 2;
  }
  try {
    at::Device device(argv[1]);
    if (device.is_cuda() && cudaSetDevice(device.index()) != cudaSuccess)
      throw environment_error("no such GPU", argv[1]);
    auto verifier = Channel::of_parent();
    Judge(*verifier, {device, argv[2]}).serve();
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tritonrl_judge: %s\n", error.what());
    ::_exit(3);
  }
}
