// SPDX-License-Identifier: Apache-2.0
#include "verify/sandbox/sandbox.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files/json.h"
#include "base/process/build_paths.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

// Runs a command to its end; its standard output.
std::string output_of(const std::vector<std::string>& command, int* status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw environment_error(cat("cannot make a pipe: ", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  int rc = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; rc == 0 && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) out.append(buffer, n);
  ::close(ends[0]);
  if (rc != 0) throw environment_error(cat("cannot run the jail: ", std::strerror(rc)), command[0]);
  while (waitpid(child, status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

}  // namespace

SandboxFiles find_sandbox_files() {
  std::error_code error;
  fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder : {here, fs::path(build_dir())}) {
    SandboxFiles files{folder / "tritonrl_jail", folder / "libtritonrl_sandbox.so"};
    if (fs::exists(files.jail, error) && fs::exists(files.library, error)) return files;
  }
  throw environment_error("tritonrl_jail and libtritonrl_sandbox.so are missing", here.string(),
                          "build the project, and keep both beside the program");
}

std::vector<Protection> probe_sandbox(const SandboxFiles& files) {
  int status = 0;
  std::string out = output_of({files.jail.string(), "--weak", "--probe"}, &status);
  std::vector<Protection> protections;
  for (const auto& line : split(out, '\n')) {
    auto fields = split(line, '\t');
    if (fields.size() == 3) protections.push_back({fields[0], fields[1] == "yes", fields[2]});
  }
  if (protections.size() < 2) {  // Not even the probe got anywhere.
    protections.push_back({"sandbox", false, cat("the probe ended early (status ", status, ")")});
  }
  return protections;
}

std::vector<std::string> missing_protections(const std::vector<Protection>& protections) {
  auto active = [&](const char* name) {
    return std::any_of(protections.begin(), protections.end(),
                       [&](const Protection& one) { return one.active && one.name == name; });
  };
  // What Landlock forbids, these do as well.
  bool files_are_closed = active("private_root") && active("read_only_root") && active("private_tmp") &&
                          active("private_proc") && active("no_privileges");
  std::vector<std::string> names;
  for (const Protection& protection : protections) {
    bool made_up_for = protection.name == "landlock" && files_are_closed;
    if (!protection.active && !made_up_for) names.push_back(protection.name);
  }
  return names;
}

std::vector<std::string> jail_command(const SandboxFiles& files, bool allow_weaker, const fs::path& python,
                                      const std::vector<fs::path>& visible, const std::vector<std::string>& arguments) {
  std::error_code error;
  // The environment's folder without symbolic links, but not the interpreter itself: bin/python of a virtual
  // environment points at the system's, and the link is what makes it that environment.
  fs::path environment = fs::canonical(python.parent_path().parent_path(), error);
  if (error || !fs::exists(python, error)) {
    throw environment_error("the Python interpreter of the worker is missing", python.string(), "run tools/setup.sh");
  }
  std::vector<fs::path> shown = visible;
  shown.push_back(files.library);
  shown.push_back(environment);
  fs::path interpreter = fs::canonical(python);
  if (interpreter.string().rfind("/usr/", 0) != 0) shown.push_back(interpreter.parent_path().parent_path());
  std::vector<std::string> command{files.jail.string()};
  if (allow_weaker) command.push_back("--weak");
  for (const fs::path& path : shown) {
    command.push_back("--bind");
    command.push_back(fs::canonical(path).string());
  }
  command.push_back("--");
  command.push_back((environment / "bin" / python.filename()).string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace tritonrl
