// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "app/train/pipeline.h"
#include "base/process/build_paths.h"
#include "model/cpu/kernels.h"
#include "model/device.h"

namespace tritonrl {

namespace {

#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;  // It says its name.
#else
constexpr char kCompiler[] = "g++ " __VERSION__;
#endif

// First line a command prints, "" when it fails.
std::string first_line(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return "";
  char buffer[512] = "";
  char* line = std::fgets(buffer, sizeof buffer, pipe);
  bool ok = ::pclose(pipe) == 0;
  return line && ok ? trim(line) : "";
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return trim(line.substr(line.find(':') + 1));
  }
  return "";
}

}  // namespace

Json environment() {
  struct utsname names = {};
  ::uname(&names);
  std::string git = "git -C '" + source_dir() + "' ";
  std::string commit = first_line(git + "rev-parse HEAD");
  Json env = {{"program", "tritonrl " TRITONRL_VERSION},
              {"commit", commit},
              {"dirty", commit.empty() ? Json() : Json(!first_line(git + "status --porcelain").empty())},
              {"compiler", kCompiler},
              {"kernel", cat(names.sysname, " ", names.release)},
              {"processor", processor()},
              {"cores", std::thread::hardware_concurrency()},
              {"memory_bytes", static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
              {"cpu_kernels", cpu::kernels().name},
              {"torch", TRITONRL_TORCH_VERSION},
              {"triton", TRITONRL_TRITON_VERSION},
              {"gpu", Json()}};
  if (has_cuda_driver())
    env["gpu"] = first_line("nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader");
  return env;
}

}  // namespace tritonrl
