// SPDX-License-Identifier: Apache-2.0
// Sandbox: what stands between a candidate and everything else.
//
// Theory of operation. Three layers, put up from the outside in; a candidate's bytes are only ever looked at in the
// innermost one.
//
//   verifier (C++, this process) -- posix_spawn --> tritonrl_jail             layer 1, once per fork server
//     new PID, mount, network, IPC, UTS and user namespaces; a root folder in memory that shows /usr, the Python
//     environment and worker/ (read-only), five device nodes (no GPU), its own /proc and /tmp; no home folders; another
//     identity; no capabilities; a clean environment
//       fork server (Python: a broker with all jobs' bytes, and a process that forks, with none; no candidate code)
//         monitor, one per job -- tritonrl_sandbox_monitor                    layer 2
//           namespaces again, so that jobs see neither the fork server nor each other; enforces deadline and memory:
//           killing the first process of the PID namespace kills all of them
//             job, PID 1 of its namespace -- tritonrl_sandbox_enter           layer 3
//               a session of its own, private /tmp of limited size, read-only /proc, rlimits (memory, files,
//               processes, processor time), no capabilities and no_new_privs, no descriptors but its result pipe,
//               Landlock, a seccomp allow-list without sockets
//
// Why so: user namespaces make all of it work for root and for plain users alike; a user namespace per job also makes
// RLIMIT_NPROC count that job's processes alone. Memory is limited per process (RLIMIT_DATA and RLIMIT_AS, beyond what
// was inherited from the fork server; shared anonymous memory is filtered out), so that most see an error they can
// name, and for all processes and files of a job together by its monitor, which looks every few milliseconds and also
// keeps the job's clock (job_watch.h). No control group: few places may make one, and a verdict must not depend on
// which. A job is the first that the kernel's out-of-memory killer takes; where it did, nobody is blamed.
//
// What can go wrong: a kernel or container that refuses user namespaces. Then the verifier does not start, unless it is
// told to make do (--allow-weaker-sandbox); every verdict then names what was missing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tritonrl {

struct Protection {
  std::string name;  // "private_root", "no_network", "seccomp", ...
  bool active = false;
  std::string reason;  // Why it is not; "" when it is.
};

// The files that the sandbox consists of.
struct SandboxFiles {
  std::filesystem::path jail;     // tritonrl_jail.
  std::filesystem::path library;  // libtritonrl_sandbox.so.
};
// Looks beside the running program, then in the build folder. Throws Error (environment).
SandboxFiles find_sandbox_files();

// Puts up all layers once and tries to break out of them, in a child. Takes about 30 ms. Throws Error (environment)
// when the jail cannot be run at all.
std::vector<Protection> probe_sandbox(const SandboxFiles& files);

// Names of the required protections that are not active. "landlock" is required where mounts do not close the file
// system already.
std::vector<std::string> missing_protections(const std::vector<Protection>& protections);

// The command that starts `python` with `arguments` in the jail, where the sandbox library, the interpreter's
// environment and `visible` can be read and nothing else.
std::vector<std::string> jail_command(const SandboxFiles& files, bool allow_weaker, const std::filesystem::path& python,
                                      const std::vector<std::filesystem::path>& visible,
                                      const std::vector<std::string>& arguments);

}  // namespace tritonrl
